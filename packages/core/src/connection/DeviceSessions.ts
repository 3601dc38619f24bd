/**
 * Where the connected devices are. A transport attaches the connections of the
 * devices that it has authenticated; the cloud sends messages to devices and
 * ends connections through this service.
 */
import { Context, Effect, Layer, Metric, Schema, type Scope, Stream } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import {
  type DeviceConnection,
  type DeviceSession,
  DisconnectReason,
  type DownlinkMessage,
  type SessionListener
} from "./DeviceSession.ts"
import { NodeSessions } from "./NodeSessions.ts"
import { Presence } from "./Presence.ts"
import { reconcile } from "./SessionReconciliation.ts"

export class DeviceSessions extends Context.Service<DeviceSessions, {
  /**
   * Sets the device online through `connection` until `detach`. Closes an earlier
   * session of the same device: a device has one session.
   */
  readonly attach: (connection: DeviceConnection) => Effect.Effect<DeviceSession, DeviceNotConnectable | StoreError>
  /** Ends the session whose connection has ended. Waits until the status is stored. */
  readonly detach: (session: DeviceSession) => Effect.Effect<void>
  /** Returns the session of the device on this node. */
  readonly session: (deviceId: DeviceId) => DeviceSession | undefined
  /** Returns all sessions on this node, one for each device. */
  readonly sessions: () => ReadonlyArray<DeviceSession>
  /** Tells `listener` of all sessions on this node from now on, until the scope closes. */
  readonly listen: (listener: Partial<SessionListener>) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Sets a device online for five minutes that has sent something over a
   * transport without connections. Without effect while the device is connected.
   */
  readonly markSeen: (device: DeviceIdentity, ip: string) => Effect.Effect<void, StoreError>
  /** Sets those of the devices offline that are online through `markSeen`. */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
  /** Sends a message to a device. Returns false when the device is not connected to this node. */
  readonly deliver: (deviceId: DeviceId, message: Omit<DownlinkMessage, "id">) => Effect.Effect<boolean>
  /**
   * Sends a message of at most 7 KB as JSON to a device on whichever node it is
   * connected. Without effect when the device is not connected.
   */
  readonly deliverAnywhere: (
    deviceId: DeviceId,
    message: Pick<DownlinkMessage, "method" | "params">
  ) => Effect.Effect<void>
  /** Returns those of the devices that are connected, to any node. */
  readonly connected: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
  /**
   * Ends the connections of devices on all nodes. `method`: a last message that
   * each device gets before, for example `thing.disable`.
   */
  readonly cutOff: (
    deviceIds: ReadonlyArray<DeviceId>,
    reason: DisconnectReason,
    method?: string
  ) => Effect.Effect<void>
}>()("@device-cloud/core/connection/DeviceSessions") {
  static readonly layer: Layer.Layer<DeviceSessions, never, Presence | NodeBus | Identifiers | DeviceLifecycle> = Layer
    .effect(DeviceSessions, Effect.suspend(() => make))
}

/** The device was disabled or deleted while it was connecting. */
export class DeviceNotConnectable extends DomainError<DeviceNotConnectable>()(
  "DeviceNotConnectable",
  {
    deviceId: Schema.String
  },
  ({ deviceId }) => `Device ${deviceId} was disabled or deleted while it was connecting`
) {}

/** What nodes tell each other of sessions. One channel, so that the notices about a device keep their order. */
const SessionNotice = Schema.TaggedUnion({
  /** The device must no longer be connected. `method`: the last message that the device gets. */
  CutOff: { deviceId: DeviceId, method: Schema.optional(Schema.String), reason: DisconnectReason },
  /** A message for a device, from a node that the device is not connected to. */
  Deliver: { deviceId: DeviceId, method: Schema.String, params: Schema.Json },
  /** The device has connected while it was online through another connection. */
  Replaced: { deviceId: DeviceId }
})
type SessionNotice = typeof SessionNotice.Type
type CutOff = SessionNotice & { readonly _tag: "CutOff" }

const SessionChannel = NodeBus.channel("connection/session", SessionNotice)

/** Device SDKs read ids as unsigned 32-bit numbers (docs/protocol/topics.md). */
const maxMessageId = 2 ** 32 - 1

const connections = Metric.gauge("device_cloud_connections", { description: "Devices connected to this node" })

const make = Effect.gen(function*() {
  const presence = yield* Presence
  const channel = yield* SessionChannel
  const lifecycle = yield* DeviceLifecycle
  const identifiers = yield* Identifiers
  const nodeSessions = new NodeSessions()
  const sessionPrefix = yield* identifiers.prefix
  let lastSession = 0
  let lastMessageId = 0

  const context = yield* Effect.context<never>()
  const count = () => connections.updateUnsafe(nodeSessions.size, context)
  count()

  const publish = (...notices: ReadonlyArray<SessionNotice>) =>
    channel.publish(notices).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a device", error))
    )

  const attach = Effect.fnUntraced(function*(connection: DeviceConnection) {
    const { device, ip } = connection
    const session: DeviceSession = { id: `${sessionPrefix}-${++lastSession}`, connection }
    // The session counts before its status is stored: `cutOff` finds a device that is disabled meanwhile.
    const previous = nodeSessions.open(session)
    const connected = yield* presence.online(device, { id: session.id, ip }).pipe(
      Effect.onError(() => Effect.sync(() => nodeSessions.end(session, previous))),
      // An interrupted `online` may still be stored.
      Effect.onInterrupt(() => Effect.forkDetach(presence.offline(device, session.id)))
    )
    if (connected === undefined) {
      nodeSessions.end(session)
      return yield* new DeviceNotConnectable({ deviceId: device.deviceId })
    }
    nodeSessions.markStored(session)
    // The earlier connection closes after the new one is stored, so that its end does not set the device offline.
    if (previous !== undefined) yield* previous.connection.close("replaced")
    else if (connected.replaced) yield* publish({ _tag: "Replaced", deviceId: device.deviceId })
    count()
    nodeSessions.announce(session, connected.waiting)
    return session
  })

  const detach = Effect.fnUntraced(function*(session: DeviceSession) {
    nodeSessions.end(session)
    count()
    yield* presence.offline(session.connection.device, session.id)
  })

  const deliver = Effect.fnUntraced(function*(deviceId: DeviceId, message: Omit<DownlinkMessage, "id">) {
    const session = nodeSessions.current(deviceId)
    if (session === undefined) return false
    lastMessageId = (lastMessageId % maxMessageId) + 1
    yield* session.connection.deliver({ id: String(lastMessageId), ...message })
    return true
  })

  const disconnect = Effect.fnUntraced(function*(deviceId: DeviceId, reason: DisconnectReason) {
    yield* nodeSessions.current(deviceId)?.connection.close(reason) ?? Effect.void
  })

  const deliverAnywhere = Effect.fnUntraced(
    function*(deviceId: DeviceId, { method, params }: Pick<DownlinkMessage, "method" | "params">) {
      if (!(yield* deliver(deviceId, { method, params }))) yield* publish({ _tag: "Deliver", deviceId, method, params })
    }
  )

  const cutOffHere = Effect.fnUntraced(function*({ deviceId, method, reason }: CutOff) {
    nodeSessions.cutOff(deviceId)
    if (method !== undefined) yield* deliver(deviceId, { method, params: {} })
    yield* disconnect(deviceId, reason)
  })

  const cutOff = Effect.fnUntraced(
    function*(deviceIds: ReadonlyArray<DeviceId>, reason: DisconnectReason, method?: string) {
      const cutOffs = deviceIds.map((deviceId): CutOff => ({
        _tag: "CutOff",
        deviceId,
        reason,
        ...method === undefined ? {} : { method }
      }))
      yield* Effect.forEach(cutOffs, cutOffHere, { concurrency: "unbounded", discard: true })
      yield* publish(...cutOffs)
      yield* presence.markOffline(deviceIds).pipe(
        Effect.catch((error) => Effect.logWarning("Devices without a connection could not be set offline", error))
      )
    }
  )

  const reconcileAll = Effect.suspend(() =>
    reconcile(presence, nodeSessions, nodeSessions.all().filter((session) => nodeSessions.isStored(session)))
  )

  const heard = (notice: SessionNotice): Effect.Effect<void> => {
    switch (notice._tag) {
      case "CutOff":
        return cutOffHere(notice)
      case "Deliver":
        return Effect.asVoid(deliver(notice.deviceId, { method: notice.method, params: notice.params }))
      case "Replaced": {
        const session = nodeSessions.current(notice.deviceId)
        return session !== undefined && nodeSessions.isStored(session)
          ? reconcile(presence, nodeSessions, [session])
          : Effect.void
      }
    }
  }
  yield* channel.subscribe({ heard, missed: reconcileAll })
  yield* Effect.forkScoped(Stream.runForEach(presence.silences, () => reconcileAll))

  const idsOf = (devices: ReadonlyArray<DeviceIdentity>) => devices.map(({ deviceId }) => deviceId)
  yield* lifecycle.register({
    stage: "connection",
    disabled: (devices) => cutOff(idsOf(devices), "disabled", "thing.disable"),
    deleting: () => Effect.succeed((devices) => cutOff(idsOf(devices), "deleted", "thing.delete"))
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach(nodeSessions.all(), ({ connection }) => connection.close("shutdown"), { discard: true })
  )

  return DeviceSessions.of({
    attach,
    detach,
    session: (deviceId) => nodeSessions.current(deviceId),
    sessions: () => nodeSessions.all(),
    listen: (listener) => nodeSessions.listen(listener),
    markOffline: presence.markOffline,
    markSeen: (device, ip) =>
      nodeSessions.current(device.deviceId) === undefined ? presence.markSeen(device, ip) : Effect.void,
    deliver,
    deliverAnywhere,
    connected: (deviceIds) => Effect.map(presence.connectionsOf(deviceIds), (stored) => [...stored.keys()]),
    cutOff
  })
})
