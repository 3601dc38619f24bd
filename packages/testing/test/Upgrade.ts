/**
 * An upgrade that waits for a device.
 */
import {
  defaultProjectId,
  type DownloadProtocol,
  Firmwares,
  isUpgradeFinal,
  Objects,
  UpgradeTasks
} from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { Effect, Stream } from "effect"

/** A device, firmware of 200,000 bytes for it, and how the upgrade ends. */
export const upgradeOf = Effect.fnUntraced(
  function*({ downloadProtocol }: { readonly downloadProtocol: DownloadProtocol }) {
    const tasks = yield* UpgradeTasks
    const product = yield* Fixtures.createProduct({ validateType: "none" })
    const device = yield* Fixtures.createDevice(product)
    const image = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, i) => i % 251))
    const { fileName, md5, objectId } = yield* Effect.flatMap(
      Objects,
      (objects) => objects.upload(defaultProjectId, "fw.bin", Stream.make(image))
    )
    const { firmware: { firmwareId } } = yield* Effect.flatMap(
      Firmwares,
      (firmwares) =>
        firmwares.create(defaultProjectId, product.productKey, {
          name: "Thermostat",
          version: "2.0.0",
          ossPath: `https://cloud.example.com/objects/${objectId}/${fileName}`,
          algorithms: "md5",
          hash: md5
        })
    )
    const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmwareId, {
      scopeMode: "targeted",
      deviceIds: [device.deviceId],
      cloudPush: true,
      downloadProtocol
    })
    const outcome = eventually(
      tasks.records(defaultProjectId, taskId, {}, { page: 1, pageSize: 1 }),
      { until: ({ items }) => isUpgradeFinal(items[0]!.record.status) }
    )
    return { device, image, outcome: Effect.map(outcome, ({ items }) => items[0]!.record.status) }
  }
)
