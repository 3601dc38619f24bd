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
import type { FirmwareServer } from "./FirmwareServer.ts"
import type { Wiretap } from "./Wiretap.ts"

/** Firmware that the device may install. */
export interface OfferedFirmware {
  /** What the device reports when it runs. */
  readonly version: string
  readonly bytes: Uint8Array
}

const page = { page: 1, pageSize: 1 }

/** Creates a task that offers the firmware to the device: in blocks, or at its address. */
const offer = Effect.fnUntraced(function*(
  { deviceId, productKey }: Device,
  { bytes, version }: OfferedFirmware,
  address: string | undefined
) {
  const objects = yield* Objects
  const { fileName, md5, objectId } = yield* objects.upload(defaultProjectId, "firmware.bin", Stream.make(bytes))
  const { firmware: { firmwareId } } = yield* (yield* Firmwares).create(defaultProjectId, productKey, {
    name: "Conformance",
    version,
    // Of blocks, nobody fetches the address.
    ossPath: address ?? `http://127.0.0.1/objects/${objectId}/${fileName}`,
    algorithms: "md5",
    hash: md5
  })
  return yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmwareId, {
    scopeMode: "targeted",
    deviceIds: [deviceId],
    cloudPush: true,
    downloadProtocol: address === undefined ? "mqtt" : "https"
  })
})

/**
 * Offers the firmware and watches the device until the upgrade has ended, or until
 * nothing of it has been heard for `patience` seconds. `server`: serves the firmware;
 * undefined: it comes in blocks over MQTT.
 */
export const checkUpgrade = Effect.fnUntraced(function*(
  device: Device,
  firmware: OfferedFirmware,
  { patience, server, wiretap }: {
    readonly patience: number
    readonly server?: FirmwareServer | undefined
    readonly wiretap: Wiretap
  },
  report: Report
) {
  const tasks = yield* UpgradeTasks
  const runs = Effect.map(
    Effect.flatMap(OtaStore, (store) => store.versions(device.deviceId)),
    (versions) => versions["default"] === firmware.version
  )
  if (yield* runs) return yield* skip(report, "takes an upgrade", `it runs ${firmware.version} already`)
  const { taskId } = yield* offer(device, firmware, server?.url)
  const record = Effect.map(tasks.records(defaultProjectId, taskId, {}, page), ({ items }) => items[0]!.record)

  /** How often the device has asked for the firmware or a part of it. */
  const downloads = () => server === undefined ? wiretap.heard("thing.file.download") : server.requests()

  /** Until the record has ended, or nothing changes any more. */
  const watch = Effect.gen(function*() {
    let seen = ""
    let since = yield* Clock.currentTimeMillis
    while (true) {
      const { status, step } = yield* record
      const now = yield* Clock.currentTimeMillis
      const state = [status, step, downloads(), server?.bytes(), wiretap.heard("thing.ota.progress")].join()
      if (isUpgradeFinal(status) || (state === seen && now - since >= patience * 1000)) return
      if (state !== seen) [seen, since] = [state, now]
      yield* Effect.sleep("100 millis")
    }
  })
  yield* watch

  const asked = downloads()
  const steps = wiretap.heard("thing.ota.progress")
  const { reason, status, step } = yield* record
  const isThere = yield* runs
  const quiet = `within ${patience} seconds`
  if (asked + steps === 0 && !isThere) {
    return yield* check(
      report,
      "takes an upgrade",
      Effect.fail(new NotSupported({ message: `nothing was heard of it ${quiet}` }))
    )
  }
  yield* check(report, "takes an upgrade", Effect.succeed(`${firmware.bytes.length} bytes`))
  yield* check(
    report,
    server === undefined ? "downloads in blocks" : "downloads over HTTP",
    asked > 0
      ? Effect.succeed(
        server === undefined
          ? `it asked for ${asked}`
          : `${server.bytes()} bytes, in ${asked} request${asked === 1 ? "" : "s"}`
      )
      : Effect.fail(new NotSupported({ message: "it asked for none" }))
  )
  yield* check(
    report,
    "reports its progress",
    steps > 0
      ? Effect.succeed(`${steps} ${steps === 1 ? "report" : "reports"}, the last one ${step} %`)
      : Effect.fail(new NotSupported({ message: "there was no report" }))
  )
  if (asked === 0 && !isThere) return yield* skip(report, "runs the new version", "it has no way to download it")
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
