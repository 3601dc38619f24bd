/**
 * Tells operators why a device cannot connect: in the log, and by device
 * (docs/decisions/0069-why-a-device-cannot-connect.md).
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { DeviceId, DeviceName, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { addressGroup } from "../kernel/NetworkAddress.ts"
import { RateWindow } from "../kernel/RateWindow.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { printable } from "../kernel/Text.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { TraceRecorder } from "../trace/TraceRecorder.ts"
import { type ConnectRefusal, ConnectRefusalStore, type NewConnectRefusal } from "./ConnectRefusalStore.ts"

/** A CONNECT that was refused. */
export interface RefusedConnect {
  /** The device that it named; undefined: none that could exist. */
  readonly device: { readonly productKey: ProductKey; readonly deviceName: DeviceName } | undefined
  /** The address of the client. */
  readonly address: string
  /** How the client wanted to connect: for example `mqtt`. Default `other`. */
  readonly transport?: string
  /** A sentence for the operator. */
  readonly reason: string
  /** The return code of the CONNACK. */
  readonly returnCode: number
}

export class ConnectRefusals extends Context.Service<ConnectRefusals, {
  /**
   * Notes a refusal, to be logged and stored within a second. Does not wait. Equal
   * ones are gathered; beyond {@link maxGathered} different ones in a second,
   * further ones are only counted in the log.
   */
  readonly note: (refused: RefusedConnect) => void
  /** Returns why CONNECTs of the device were refused on any node, the latest first, at most 20. */
  readonly ofDevice: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<ReadonlyArray<ConnectRefusal>, DeviceNotFound | StoreError>
}>()("@device-cloud/core/provisioning/ConnectRefusals") {
  static readonly layer: Layer.Layer<ConnectRefusals, never, ConnectRefusalStore | Devices | TraceRecorder> = Layer
    .effect(
      ConnectRefusals,
      Effect.suspend(() => make)
    )
}

/** Different refusals that wait to be stored. */
export const maxGathered = 500

/** Lines of the log about refusals in a second. */
const maxLines = 10

interface Gathered extends ConnectRefusal {
  readonly device: RefusedConnect["device"]
}

const make = Effect.gen(function*() {
  const store = yield* ConnectRefusalStore
  const devices = yield* Devices
  const recorder = yield* TraceRecorder
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let gathered = new Map<string, Gathered>()
  let uncounted = 0
  /** Refusals that the log has told within the last minute. */
  const told = new RateWindow({ limit: 1, window: 60_000, capacity: 10_000 })

  const note = ({ address: exact, device, reason: text, returnCode, transport = "other" }: RefusedConnect) => {
    const at = clock.currentTimeMillisUnsafe()
    const address = addressGroup(exact)
    // An application may refuse a proof for any reason.
    const reason = printable(text)
    if (device !== undefined) recorder.noteNamed(device, { kind: "refused", transport, address: exact, reason })
    const key = `${address}\0${device?.productKey ?? ""}\0${device?.deviceName ?? ""}\0${reason}`
    const before = gathered.get(key)
    if (before === undefined && gathered.size >= maxGathered) {
      uncounted++
      return
    }
    if (gathered.size === 0) runFork(Effect.forkIn(Effect.delay(flush, "1 second"), scope))
    const [times, firstAt] = before === undefined ? [1, at] : [before.times + 1, before.firstAt]
    gathered.set(key, { device, address, reason, returnCode, times, firstAt, at })
  }

  const log = (refusals: ReadonlyMap<string, Gathered>, left: number) => {
    const now = clock.currentTimeMillisUnsafe()
    const untold = [...refusals].filter(([key]) => told.fullUntil(key) <= now)
    const lines = untold.slice(0, maxLines)
    const more = untold.slice(maxLines).reduce((sum, [, { times }]) => sum + times, left)
    for (const [key] of lines) told.hit(key, now)
    return Effect.forEach(
      lines,
      ([, { address, device, reason, returnCode, times }]) =>
        Effect.logWarning("A CONNECT was refused").pipe(Effect.annotateLogs({
          product_key: printable(device?.productKey ?? ""),
          device_name: printable(device?.deviceName ?? ""),
          address,
          reason,
          return_code: returnCode,
          times
        })),
      { discard: true }
    ).pipe(
      Effect.andThen(more === 0 ? Effect.void : Effect.logWarning(`${more} more CONNECTs were refused`))
    )
  }

  const flush = Effect.suspend(() => {
    const [refusals, left] = [gathered, uncounted]
    gathered = new Map()
    uncounted = 0
    const ofDevices = [...refusals.values()].flatMap(({ device, ...refusal }): ReadonlyArray<NewConnectRefusal> =>
      device === undefined ? [] : [{ ...refusal, ...device }]
    )
    return log(refusals, left).pipe(
      Effect.andThen(ofDevices.length === 0 ? Effect.void : store.add(ofDevices)),
      Effect.catch((error) => Effect.logWarning("Refused CONNECTs could not be stored", error))
    )
  })

  return ConnectRefusals.of({
    note,
    ofDevice: Effect.fn("ConnectRefusals.ofDevice")(function*(projectId, deviceId) {
      yield* devices.get(projectId, { deviceId })
      return yield* store.of(deviceId)
    })
  })
})
