/**
 * An upgrade of a real device, over its own connection.
 */
import {
  defaultProjectId,
  type Device,
  Firmwares,
  isUpgradeFinal,
  Objects,
  OtaStore,
  UpgradeTasks
} from "@device-cloud/core"
import { Clock, Effect, Stream } from "effect"
import { check, NotSupported, type Report, skip, Unexpected } from "./Check.ts"
import type { Wiretap } from "./Wiretap.ts"

/** Firmware that the device may install. */
export interface OfferedFirmware {
  /** What the device reports when it runs. */
  readonly version: string
  readonly bytes: Uint8Array
}

const page = { page: 1, pageSize: 1 }

/** Creates a task that offers the firmware to the device. */
const offer = Effect.fnUntraced(function*({ deviceId, productKey }: Device, { bytes, version }: OfferedFirmware) {
  const objects = yield* Objects
  const { fileName, md5, objectId } = yield* objects.upload(defaultProjectId, "firmware.bin", Stream.make(bytes))
  const { firmware: { firmwareId } } = yield* (yield* Firmwares).create(defaultProjectId, productKey, {
    name: "Conformance",
    version,
    // The device gets blocks: nobody fetches this address.
    ossPath: `http://127.0.0.1/objects/${objectId}/${fileName}`,
    algorithms: "md5",
    hash: md5
  })
  return yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmwareId, {
    scopeMode: "targeted",
    deviceIds: [deviceId],
    cloudPush: true,
    downloadProtocol: "mqtt"
  })
})

/**
 * Offers the firmware and watches the device until the upgrade has ended, or until
 * nothing of it has been heard for `patience` seconds.
 */
export const checkUpgrade = Effect.fnUntraced(function*(
  device: Device,
  firmware: OfferedFirmware,
  { patience, wiretap }: { readonly patience: number; readonly wiretap: Wiretap },
  report: Report
) {
  const tasks = yield* UpgradeTasks
  const { taskId } = yield* offer(device, firmware)
  const record = Effect.map(tasks.records(defaultProjectId, taskId, {}, page), ({ items }) => items[0]!.record)

  /** Until the record has ended, or nothing changes any more. */
  const watch = Effect.gen(function*() {
    let seen = ""
    let since = yield* Clock.currentTimeMillis
    while (true) {
      const { status, step } = yield* record
      const now = yield* Clock.currentTimeMillis
      const state = [status, step, wiretap.heard("thing.file.download"), wiretap.heard("thing.ota.progress")].join()
      if (isUpgradeFinal(status) || (state === seen && now - since >= patience * 1000)) return
      if (state !== seen) [seen, since] = [state, now]
      yield* Effect.sleep("100 millis")
    }
  })
  yield* watch

  const blocks = wiretap.heard("thing.file.download")
  const steps = wiretap.heard("thing.ota.progress")
  const { reason, status, step } = yield* record
  const versions = yield* (yield* OtaStore).versions(device.deviceId)
  const isThere = Object.values(versions).includes(firmware.version)
  const quiet = `within ${patience} seconds`
  if (blocks + steps === 0 && !isThere) {
    return yield* check(
      report,
      "takes an upgrade",
      Effect.fail(new NotSupported({ message: `nothing was heard of it ${quiet}` }))
    )
  }
  yield* check(report, "takes an upgrade", Effect.succeed(`${firmware.bytes.length} bytes`))
  yield* check(
    report,
    "downloads in blocks",
    blocks > 0
      ? Effect.succeed(`it asked for ${blocks}`)
      : Effect.fail(new NotSupported({ message: "it asked for none" }))
  )
  yield* check(
    report,
    "reports its progress",
    steps > 0
      ? Effect.succeed(`${steps} ${steps === 1 ? "report" : "reports"}, the last one ${step} %`)
      : Effect.fail(new NotSupported({ message: "there was no report" }))
  )
  if (blocks === 0 && !isThere) return yield* skip(report, "runs the new version", "it has no way to download it")
  yield* check(
    report,
    "runs the new version",
    isThere
      ? Effect.succeed(firmware.version)
      : Effect.fail(
        new Unexpected({
          message: isUpgradeFinal(status)
            ? `the upgrade has failed: ${reason}`
            : `expected a report of version ${firmware.version}, and heard nothing more ${quiet}`
        })
      )
  )
})
