/**
 * Keeps the stored status of devices true: online, offline, and since when.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { EventBus } from "../event/EventBus.ts"
import * as GroupCommit from "../GroupCommit.ts"
import { Identifiers } from "../Identifiers.ts"
import { type StoreError, untilStored } from "../StoreError.ts"
import type { DeviceId, DeviceIdentity } from "./Device.ts"
import { type PresenceChange, type PresenceOutcome, PresenceStore } from "./PresenceStore.ts"

/** Changes that may wait to be stored. */
const capacity = 8192
/** Changes in one transaction. */
const maxBatch = 1024

/** How often a node says that it is alive, and how long it may be silent before its devices count as offline. */
const heartbeatEvery = "3 seconds"
const silenceLimitMillis = 12_000
/** Devices of a lost node that go offline in one transaction. */
const releaseLimit = 1000

/** The same changes in as few groups as possible, with no device twice in a group and the order of each device kept. */
const oncePerDevice = (changes: ReadonlyArray<PresenceChange>): ReadonlyArray<ReadonlyArray<PresenceChange>> => {
  const groups: Array<Array<PresenceChange>> = []
  const seen = new Map<DeviceId, number>()
  for (const change of changes) {
    const group = seen.get(change.deviceId) ?? 0
    seen.set(change.deviceId, group + 1)
    const changesOfGroup = groups[group]
    if (changesOfGroup === undefined) groups.push([change])
    else changesOfGroup.push(change)
  }
  return groups
}

const make = Effect.gen(function*() {
  const store = yield* PresenceStore
  const events = yield* EventBus
  const nodeId = yield* (yield* Identifiers).connectionId

  const commit = Effect.fnUntraced(function*(changes: ReadonlyArray<PresenceChange>) {
    const outcomes = new Map<PresenceChange, PresenceOutcome>()
    for (const group of oncePerDevice(changes)) {
      const recorded = yield* store.record(group)
      group.forEach((change, i) => outcomes.set(change, recorded[i]!))
    }
    return changes.map((change) => outcomes.get(change)!)
  })

  const changes = yield* GroupCommit.make<PresenceChange, PresenceOutcome, StoreError>({
    capacity,
    maxBatch,
    commit,
    isolate: ({ retryable }) => !retryable
  })

  const publish = (device: DeviceIdentity, status: "online" | "offline", at: number, version: number) =>
    events.publish([{ _tag: "DeviceStatusChanged", device, at, status, version }])

  const online = Effect.fnUntraced(function*(
    device: DeviceIdentity,
    connection: { readonly id: string; readonly ip: string }
  ) {
    const at = yield* Clock.currentTimeMillis
    const { deviceId } = device
    const outcome = yield* changes.submit({
      _tag: "Online",
      deviceId,
      connectionId: connection.id,
      nodeId,
      ip: connection.ip,
      at
    })
    if (outcome._tag === "Changed") yield* publish(device, "online", at, outcome.version)
    return outcome._tag !== "Ignored"
  })

  const offline = Effect.fnUntraced(function*(device: DeviceIdentity, connectionId: string) {
    const at = yield* Clock.currentTimeMillis
    const change: PresenceChange = { _tag: "Offline", deviceId: device.deviceId, connectionId, at }
    const outcome = yield* changes.submit(change).pipe(
      untilStored,
      Effect.catch((error) => Effect.as(Effect.logError("A device's status could not be stored", error), undefined))
    )
    if (outcome?._tag === "Changed") yield* publish(device, "offline", at, outcome.version)
  })

  /** Until no device is left that the given node, or any silent one, held. */
  const release = Effect.fnUntraced(function*(node: { readonly id: string } | { readonly silentSince: number }) {
    while (true) {
      const at = yield* Clock.currentTimeMillis
      const lost = yield* store.release({ node, at, limit: releaseLimit })
      for (const { device, version } of lost) yield* publish(device, "offline", at, version)
      if (lost.length < releaseLimit) return
    }
  })

  yield* store.heartbeat(nodeId, yield* Clock.currentTimeMillis)

  const beat = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* store.heartbeat(nodeId, now)
    yield* release({ silentSince: now - silenceLimitMillis })
  })

  yield* beat.pipe(
    Effect.catch((error) => Effect.logWarning("The node could not say that it is alive", error)),
    Effect.repeat(Schedule.spaced(heartbeatEvery)),
    Effect.forkScoped
  )

  yield* Effect.addFinalizer(() =>
    release({ id: nodeId }).pipe(
      Effect.timeoutOption("2 seconds"),
      Effect.catch((error) => Effect.logWarning("The node could not release its devices", error))
    )
  )

  return Presence.of({ online, offline })
})

export class Presence extends Context.Service<Presence, {
  /**
   * Stores that the device is online through this connection, in place of an
   * earlier one. False: the device has been disabled or deleted.
   */
  readonly online: (
    device: DeviceIdentity,
    connection: { readonly id: string; readonly ip: string }
  ) => Effect.Effect<boolean, StoreError>
  /** Stores that the connection has ended, as soon as the store allows; without effect when a newer one counts. */
  readonly offline: (device: DeviceIdentity, connectionId: string) => Effect.Effect<void>
}>()("@device-cloud/core/device/Presence") {
  /**
   * The node says every 3 seconds that it is alive. Devices of a node that has
   * been silent for 12 seconds go offline.
   */
  static readonly layer: Layer.Layer<Presence, StoreError, PresenceStore | EventBus | Identifiers> = Layer.effect(
    Presence,
    make
  )
}
