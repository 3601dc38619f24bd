/**
 * A cloud for a real device: what of the protocol the device does.
 */
import { Commands, defaultProjectId, type Device, DeviceSessions, OtaStore, Shadows } from "@device-cloud/core"
import { Effect } from "effect"
import * as CloudState from "../CloudState.ts"
import { eventually } from "../Eventually.ts"
import { check, type Report, skip, Unexpected } from "./Check.ts"

export interface DeviceOptions {
  /** Seconds that the device has for its first connection and its first report. */
  readonly patience: number
  /** A service of the device that may be called without inputs; undefined: none is called. */
  readonly service?: string | undefined
}

const within = (seconds: number) => ({ timeout: seconds * 1000, interval: 100 })

/** Waits for the device and makes all checks. It sets properties only to what the device has reported. */
export const checkDevice = Effect.fnUntraced(function*(
  device: Device,
  { patience, service }: DeviceOptions,
  report: Report
) {
  const sessions = yield* DeviceSessions
  const commands = yield* Commands
  const shadows = yield* Shadows
  const { deviceId } = device
  const isConnected = Effect.sync(() => sessions.session(deviceId) !== undefined)
  const connected = eventually(isConnected, { ...within(patience), until: (is) => is })
  const works = <R>(name: string, run: Effect.Effect<string | void, unknown, R>) => check(report, name, run)

  // The first connection may take as long as somebody needs to plug the device in.
  const first = yield* Effect.exit(connected)
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

  const asked = (serviceId: string | null, params: Readonly<Record<string, never>>) =>
    Effect.gen(function*() {
      const { command: { code, deliveries, state } } = yield* commands.request(
        defaultProjectId,
        deviceId,
        serviceId,
        params,
        { wait: 20 }
      )
      if (state !== "succeeded" && state !== "failed") {
        return yield* Effect.fail(new Unexpected({ message: `it is ${state}` }))
      }
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
            Effect.fail(new Unexpected({ message: "the value is still desired after 20 seconds" }))
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
        ? Effect.fail(new Unexpected({ message: "it has reported no version" }))
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
})
