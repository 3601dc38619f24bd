/**
 * Knows which devices are traced, and notes what they say and hear
 * (docs/decisions/0115-traces-of-devices.md).
 *
 * For a device that is not traced, a message costs one look-up in a map that is
 * usually empty. Noting never waits: when there is no room, entries are counted and
 * dropped.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { type DeviceId, type DeviceIdentity, deviceKey } from "../device/Device.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { keptAfterEnd, keptEntries, type TraceEntry } from "./TraceEntry.ts"
import { type NotedEntries, type TracedDevice, TraceStore } from "./TraceStore.ts"

/** An entry as it is noted; the node adds the rest. */
export interface NewTraceEntry extends Omit<TraceEntry, "at" | "nodeId"> {
  /** Unix milliseconds. Default: now. */
  readonly at?: number
}

export class TraceRecorder extends Context.Service<TraceRecorder, {
  /** Whether any device is traced. Look before you make an entry. */
  readonly isOn: () => boolean
  /** Whether the device is traced. Look before you make an entry. */
  readonly isTraced: (deviceId: DeviceId) => boolean
  /** Notes an entry of a device, if it is traced. Does not wait. */
  readonly note: (deviceId: DeviceId, entry: NewTraceEntry) => void
  /** Like `note`, for a device of which only the name is known. */
  readonly noteNamed: (name: Pick<DeviceIdentity, "productKey" | "deviceName">, entry: NewTraceEntry) => void
  /** Reads again which devices are traced, here and on the other nodes. */
  readonly changed: Effect.Effect<void, StoreError>
}>()("@device-cloud/core/trace/TraceRecorder") {
  static readonly layer: Layer.Layer<TraceRecorder, never, TraceStore | NodeBus> = Layer.effect(
    TraceRecorder,
    Effect.suspend(() => make)
  )
}

/** Entries of all devices that wait on this node to be stored. */
export const maxWaiting = 2000
/** Characters of their payloads and replies. */
const maxWaitingText = 8 * 1024 * 1024
/** How long entries are gathered before they are stored. */
const gatherTime = "200 millis"
/** How often a node looks which devices are traced, should a notice be lost. */
const lookEvery = "30 seconds"

/** Devices have been added or taken away. */
const Changes = NodeBus.channel("trace/changed", Schema.Struct({}))

const textOf = ({ payload, reply }: NewTraceEntry): number =>
  (payload?.text.length ?? 0) + (reply === undefined ? 0 : reply.data.text.length + reply.message.length)

/** What waits of one device. */
interface Waiting {
  readonly entries: Array<TraceEntry>
  dropped: number
}

const make = Effect.gen(function*() {
  const store = yield* TraceStore
  const changes = yield* Changes
  const { nodeId } = yield* NodeBus
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let traced: ReadonlyMap<DeviceId, TracedDevice> = new Map()
  let ids: ReadonlyMap<string, DeviceId> = new Map()
  let waiting = new Map<DeviceId, Waiting>()
  let count = 0
  let text = 0
  let isStoring = false

  const look = Effect.gen(function*() {
    const devices = yield* store.active(clock.currentTimeMillisUnsafe())
    traced = new Map(devices.map((device) => [device.deviceId, device]))
    ids = new Map(devices.map((device) => [deviceKey(device), device.deviceId]))
  })
  const tryLook = look.pipe(
    Effect.catch((error) => Effect.logWarning("It is not known which devices are traced", error))
  )

  const flush = Effect.suspend(() => {
    const noted = [...waiting].map(([deviceId, ofDevice]): NotedEntries => ({ deviceId, ...ofDevice }))
    waiting = new Map()
    count = text = 0
    return store.append(noted, keptEntries).pipe(
      Effect.as(true),
      Effect.catch((error) => {
        for (const { deviceId, dropped, entries } of noted) waitingOf(deviceId).dropped += dropped + entries.length
        return Effect.as(Effect.logWarning("What devices have said could not be traced", error), false)
      })
    )
  })

  /** Stores what waits, until nothing does. */
  const storeAll = Effect.andThen(Effect.sleep(gatherTime), flush).pipe(
    Effect.repeat({ while: (isStored) => isStored && waiting.size > 0 }),
    Effect.ensuring(Effect.sync(() => void (isStoring = false))),
    Effect.forkIn(scope)
  )

  const waitingOf = (deviceId: DeviceId): Waiting => {
    const known = waiting.get(deviceId)
    if (known !== undefined) return known
    const added = { entries: [], dropped: 0 }
    waiting.set(deviceId, added)
    return added
  }

  const isTraced = (deviceId: DeviceId): boolean => {
    if (traced.size === 0) return false
    const device = traced.get(deviceId)
    return device !== undefined && device.until > clock.currentTimeMillisUnsafe()
  }

  const note = (deviceId: DeviceId, entry: NewTraceEntry) => {
    if (!isTraced(deviceId)) return
    const ofDevice = waitingOf(deviceId)
    if (count >= maxWaiting || text >= maxWaitingText) ofDevice.dropped++
    else {
      count++
      text += textOf(entry)
      ofDevice.entries.push({ at: clock.currentTimeMillisUnsafe(), ...entry, nodeId })
    }
    if (isStoring) return
    isStoring = true
    runFork(storeAll)
  }

  yield* tryLook
  yield* changes.subscribe({ heard: () => tryLook, missed: tryLook })
  yield* Effect.suspend(() => store.prune(clock.currentTimeMillisUnsafe() - keptAfterEnd)).pipe(
    Effect.catch((error) => Effect.logWarning("Old traces could not be removed", error)),
    Effect.andThen(tryLook),
    Periodic.every(lookEvery)
  )

  return TraceRecorder.of({
    isOn: () => traced.size > 0,
    isTraced,
    note,
    noteNamed: (name, entry) => {
      if (traced.size === 0) return
      const deviceId = ids.get(deviceKey(name))
      if (deviceId !== undefined) note(deviceId, entry)
    },
    changed: Effect.andThen(
      look,
      changes.publish([{}]).pipe(
        Effect.catch((error) => Effect.logWarning("Other nodes learn later which devices are traced", error))
      )
    )
  })
})
