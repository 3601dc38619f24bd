/**
 * A cloud for a real device: what of the protocol the device does.
 */
import { Commands, defaultProjectId, type Device, DeviceSessions, OtaStore, Shadows } from "@device-cloud/core"
import { Effect } from "effect"
import * as CloudState from "../CloudState.ts"
import { eventually } from "../Eventually.ts"
import { check, NotSupported, type Report, skip, Unexpected } from "./Check.ts"
import type { FirmwareServer } from "./FirmwareServer.ts"
import { checkUpgrade, type OfferedFirmware } from "./UpgradeChecks.ts"
import type { Wiretap } from "./Wiretap.ts"

export interface DeviceOptions {
  /** Hears what the device sends. */
  readonly wiretap: Wiretap
  /** Seconds that the device has for its first connection, for its first report, and between two steps of an upgrade. */
  readonly patience: number
  /** A service of the device that may be called without inputs; undefined: none is called. */
  readonly service?: string | undefined
  /** Firmware for the device; undefined: none is offered. */
  readonly firmware?: OfferedFirmware | undefined
  /** Serves the firmware; undefined: the device gets it in blocks over MQTT. */
  readonly server?: FirmwareServer | undefined
}

const within = (seconds: number) => ({ timeout: seconds * 1000, interval: 100 })

/** Waits for the device and makes all checks. It sets properties only to what the device has reported. */
export const checkDevice = Effect.fnUntraced(function*(
  device: Device,
  { firmware, patience, server, service, wiretap }: DeviceOptions,
  report: Report
) {
  const sessions = yield* DeviceSessions
  const commands = yield* Commands
  const shadows = yield* Shadows
  const { deviceId } = device
  const isConnected = Effect.sync(() => sessions.session(deviceId) !== undefined)
  // A device that sleeps between its reports may have come and gone between two looks.
  const hasConnected = eventually(CloudState.device(device), {
    ...within(patience),
    until: ({ status }) => status !== "unactive"
  })
  const works = <R>(name: string, run: Effect.Effect<string | void, unknown, R>) => check(report, name, run)

  // The first connection may take as long as somebody needs to plug the device in.
  const first = yield* Effect.exit(hasConnected)
  const isThere = yield* works(
    "connects with a signature",
    first._tag === "Success"
      ? Effect.void
      : Effect.fail(new Unexpected({ message: `it did not within ${patience} seconds` }))
  )
  if (!isThere) return yield* skip(report, "everything else", "the device does not connect")

  const reported = yield* Effect.exit(eventually(CloudState.reported(device), {
    ...within(patience),
    until: (values) => Object.keys(values).length > 0
  }))
  yield* works(
    "reports properties",
    reported._tag === "Success"
      ? Effect.succeed(Object.keys(reported.value).join(", "))
      : Effect.fail(new Unexpected({ message: `none within ${patience} seconds` }))
  )
  const [value] = reported._tag === "Success" ? Object.entries(reported.value) : []

  /** A device that has left may be on its way back. */
  const isBack = eventually(isConnected, { ...within(8), until: (is) => is }).pipe(
    Effect.catchDefect(() =>
      Effect.fail(new Unexpected({ message: "it has left, and did not come back within 8 seconds" }))
    )
  )

  const asked = (serviceId: string | null, params: Readonly<Record<string, never>>) =>
    Effect.gen(function*() {
      const request = Effect.map(
        commands.request(defaultProjectId, deviceId, serviceId, params, { wait: 20 }),
        ({ command }) => command
      )
      yield* isBack
      let command = yield* request
      // A device that reports often has reported the values again before the command leaves: it waits up to three
      // seconds until the software of a new connection listens.
      for (let again = 0; again < 4 && command.state === "succeeded" && command.code === null; again++) {
        yield* Effect.sleep("1 second")
        command = yield* request
      }
      const { code, deliveries, state } = command
      if (state !== "succeeded" && state !== "failed") {
        return yield* Effect.fail(new Unexpected({ message: `it is ${state}` }))
      }
      // The cloud ends a command without an answer, too, once the device has reported the values again.
      if (code === null) return yield* Effect.fail(new Unexpected({ message: `it is ${state} without an answer` }))
      return `code ${code}, after ${deliveries} ${deliveries === 1 ? "delivery" : "deliveries"}`
    })
  if (value === undefined) yield* skip(report, "answers a property set", "no property is known")
  else yield* works("answers a property set", asked(null, { [value[0]]: value[1] } as Readonly<Record<string, never>>))
  if (service === undefined) yield* skip(report, "answers a service call", "it needs --service")
  else yield* works("answers a service call", asked(service, {}))

  if (value === undefined) yield* skip(report, "takes over what is desired", "no property is known")
  else {
    yield* works(
      "takes over what is desired",
      Effect.gen(function*() {
        yield* shadows.desire(defaultProjectId, deviceId, { [value[0]]: value[1] })
        yield* eventually(shadows.get(defaultProjectId, deviceId), {
          ...within(20),
          until: ({ shadow }) => Object.keys(shadow.desired).length === 0
        }).pipe(
          Effect.catchDefect(() =>
            Effect.fail(
              wiretap.heard("thing.shadow") + wiretap.heard("thing.property.desired.delete") === 0
                ? new NotSupported({ message: "it sends no message about its shadow" })
                : new Unexpected({ message: "the value is still desired after 20 seconds" })
            )
          )
        )
      })
    )
  }
  yield* works(
    "says which firmware it runs",
    Effect.map(Effect.flatMap(OtaStore, (store) => store.versions(deviceId)), (versions) => {
      const known = Object.entries(versions).map(([module, version]) => `${module} ${version}`)
      return known.length === 0
        ? Effect.fail(new NotSupported({ message: "it has reported no version" }))
        : Effect.succeed(known.join(", "))
    }).pipe(Effect.flatten)
  )
  yield* works(
    "comes back when the connection ends",
    Effect.gen(function*() {
      const session = sessions.session(deviceId)
      yield* session?.connection.close("shutdown") ?? Effect.void
      yield* eventually(Effect.sync(() => sessions.session(deviceId)), {
        ...within(25),
        until: (now) => now !== undefined && now !== session
      }).pipe(Effect.catchDefect(() => Effect.fail(new Unexpected({ message: "it did not within 25 seconds" }))))
    })
  )
  if (firmware === undefined) yield* skip(report, "takes an upgrade", "it needs --firmware and --firmware-version")
  else yield* checkUpgrade(device, firmware, { patience, server, wiretap }, report)
  const times = wiretap.heard("time")
  yield* works(
    "asks for the time",
    times > 0
      ? Effect.succeed(times === 1 ? "once" : `${times} times`)
      : Effect.fail(new NotSupported({ message: "it did not during these checks" }))
  )
})
