/**
 * Where the connected devices are. Transports attach the connections of devices
 * that they have authenticated; the cloud delivers and disconnects through them.
 */
import { Context, Effect, Layer, Metric, Schema, type Scope, Stream } from "effect"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { Presence } from "./Presence.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { Json } from "../kernel/Json.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { ChurnMap } from "../kernel/ChurnMap.ts"

export class DeviceSessions extends Context.Service<DeviceSessions, {
  /**
   * The device is online through `connection` until the session is detached. An
   * earlier session of the same device is closed: one per device.
   */
  readonly attach: (connection: DeviceConnection) => Effect.Effect<DeviceSession, DeviceNotConnectable | StoreError>
  /** The connection has ended. The status is stored as soon as the store allows. */
  readonly detach: (session: DeviceSession) => Effect.Effect<void>
  /** The session of the device on this node. */
  readonly session: (deviceId: DeviceId) => DeviceSession | undefined
  /** All sessions on this node, one for each device. */
  readonly sessions: () => ReadonlyArray<DeviceSession>
  /** Tells `listener` of all sessions from now on. */
  readonly listen: (listener: Partial<SessionListener>) => Effect.Effect<void, never, Scope.Scope>
  /** A device has said something over a transport without connections: it counts as online for five minutes. */
  readonly markSeen: (device: DeviceIdentity, ip: string) => Effect.Effect<void, StoreError>
  /** Devices that were sighted are offline from now on. */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
  /** False when the device is not connected to this node. */
  readonly deliver: (deviceId: DeviceId, message: Omit<DownlinkMessage, "id">) => Effect.Effect<boolean>
  /** Wherever the device is connected; without effect when it is not. A message of at most 7 KB. */
  readonly deliverAnywhere: (
    deviceId: DeviceId,
    message: Pick<DownlinkMessage, "method" | "params">
  ) => Effect.Effect<void>
  /** Those of the devices that hold a connection, to whichever node. */
  readonly connected: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
  /** Ends the connections of devices, wherever they are. `method`: the last that they are told, for example `thing.disable`. */
  readonly cutOff: (
    deviceIds: ReadonlyArray<DeviceId>,
    reason: DisconnectReason,
    method?: string
  ) => Effect.Effect<void>
}>()("@device-cloud/core/connection/DeviceSessions") {
  static readonly layer: Layer.Layer<DeviceSessions, never, Presence | NodeBus | Identifiers | DeviceLifecycle> = Layer
    .effect(DeviceSessions, Effect.suspend(() => make))
}

/** Something that the cloud tells a device, whatever transport carries it. */
export interface DownlinkMessage {
  readonly id: string
  /** For example `thing.service.property.set`. */
  readonly method: string
  readonly params: Json
  /** The sub-device behind the connection that it is for; without it, the connection's own device. */
  readonly subDevice?: DeviceIdentity
}

/** Why the cloud ends a connection. `detached`: the sub-device does not belong to the gateway any more. */
export const DisconnectReason = Schema.Literals(["replaced", "disabled", "deleted", "detached", "shutdown"])
export type DisconnectReason = typeof DisconnectReason.Type

/** What a transport offers of a connection. */
export interface DeviceConnection {
  readonly device: DeviceIdentity
  /** The device's address. */
  readonly ip: string
  /** Ends when the message has been handed to the network; `acknowledged` is called when the device has confirmed it. */
  readonly deliver: (message: DownlinkMessage, acknowledged?: () => void) => Effect.Effect<void>
  /**
   * Undefined: there is room for another message. Otherwise what waits until
   * there is, or the connection has ended.
   */
  readonly backlog: () => Effect.Effect<void> | undefined
  readonly close: (reason: DisconnectReason) => Effect.Effect<void>
}

/** A connection that is attached. */
export interface DeviceSession {
  readonly id: string
  readonly connection: DeviceConnection
}

/** Follows sessions, in the turn in which something happens to them. */
export interface SessionListener {
  /** The device is there; it can be reached in a moment. */
  readonly attaching: (session: DeviceSession) => void
  /** It is online, and can be reached. `waiting`: as in `PresenceOutcome`. */
  readonly attached: (session: DeviceSession, waiting: boolean) => void
  /** The session has ended, or was never attached. */
  readonly detached: (session: DeviceSession) => void
  /** The device may not be connected any more, here or anywhere; it may have no session. */
  readonly cutOff: (deviceId: DeviceId) => void
}

/** The device was disabled or deleted while it was connecting. */
export class DeviceNotConnectable extends Schema.TaggedError<DeviceNotConnectable>()("DeviceNotConnectable", {
  deviceId: Schema.String
}) {}

/** What nodes tell each other of sessions. One channel, so that the notices about a device keep their order. */
const SessionNotice = Schema.TaggedUnion({
  /** The device may not be connected any more; `method` is the last that it is told. */
  CutOff: { deviceId: DeviceId, method: Schema.optional(Schema.String), reason: DisconnectReason },
  /** A message for a device from a node that it is not connected to. */
  Deliver: { deviceId: DeviceId, method: Schema.String, params: Schema.Json },
  /** The device has connected while another connection of it counted. */
  Replaced: { deviceId: DeviceId }
})
type SessionNotice = typeof SessionNotice.Type
type CutOff = SessionNotice & { readonly _tag: "CutOff" }

const SessionChannel = NodeBus.channel("connection/session", SessionNotice)

/** Device SDKs read ids as unsigned 32-bit numbers (alink-facts, section 1). */
const maxMessageId = 2 ** 32 - 1

/** Sessions that are compared with the store at once. */
const reconcileLimit = 1000

const connections = Metric.gauge("device_cloud_connections", { description: "Devices connected to this node" })

const make = Effect.gen(function*() {
  const presence = yield* Presence
  const channel = yield* SessionChannel
  const lifecycle = yield* DeviceLifecycle
  const identifiers = yield* Identifiers
  /** The session that counts, of each device. */
  const sessions = new ChurnMap<DeviceId, DeviceSession>()
  /** All sessions that have not been detached. */
  const live = new WeakSet<DeviceSession>()
  /** Those of them whose status has been stored. */
  const stored = new WeakSet<DeviceSession>()
  const sessionPrefix = yield* identifiers.nodeId
  let lastSession = 0
  let lastMessageId = 0
  const listeners = new Set<Partial<SessionListener>>()

  const context = yield* Effect.context<never>()
  const count = () => connections.updateUnsafe(sessions.size, context)
  count()

  /** Puts `previous` back in the place of `session`, unless it has ended or another one has come. */
  const forget = (session: DeviceSession, previous?: DeviceSession) => {
    const { deviceId } = session.connection.device
    live.delete(session)
    for (const listener of listeners) listener.detached?.(session)
    if (sessions.get(deviceId) !== session) return
    if (previous !== undefined && live.has(previous)) sessions.set(deviceId, previous)
    else sessions.delete(deviceId)
  }

  const publish = (...notices: ReadonlyArray<SessionNotice>) =>
    channel.publish(notices).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a device", error))
    )

  const attach = Effect.fnUntraced(function*(connection: DeviceConnection) {
    const { device, ip } = connection
    const session: DeviceSession = { id: `${sessionPrefix}-${++lastSession}`, connection }
    const previous = sessions.get(device.deviceId)
    // In its place before the status is stored: a device that is disabled meanwhile is found and disconnected.
    live.add(session)
    sessions.set(device.deviceId, session)
    for (const listener of listeners) listener.attaching?.(session)
    const connected = yield* presence.online(device, { id: session.id, ip }).pipe(
      Effect.onError(() => Effect.sync(() => forget(session, previous))),
      // What was handed over may be stored all the same.
      Effect.onInterrupt(() => Effect.forkDetach(presence.offline(device, session.id)))
    )
    if (connected === undefined) {
      forget(session)
      return yield* new DeviceNotConnectable({ deviceId: device.deviceId })
    }
    stored.add(session)
    // After the status is stored: the end of the earlier connection then says nothing about the device.
    if (previous !== undefined) yield* previous.connection.close("replaced")
    else if (connected.replaced) yield* publish({ _tag: "Replaced", deviceId: device.deviceId })
    count()
    for (const listener of listeners) listener.attached?.(session, connected.waiting)
    return session
  })

  const detach = Effect.fnUntraced(function*(session: DeviceSession) {
    forget(session)
    count()
    yield* presence.offline(session.connection.device, session.id)
  })

  const deliver = Effect.fnUntraced(function*(deviceId: DeviceId, message: Omit<DownlinkMessage, "id">) {
    const session = sessions.get(deviceId)
    if (session === undefined) return false
    lastMessageId = (lastMessageId % maxMessageId) + 1
    yield* session.connection.deliver({ id: String(lastMessageId), ...message })
    return true
  })

  const disconnect = Effect.fnUntraced(function*(deviceId: DeviceId, reason: DisconnectReason) {
    yield* sessions.get(deviceId)?.connection.close(reason) ?? Effect.void
  })

  const deliverAnywhere = Effect.fnUntraced(
    function*(deviceId: DeviceId, { method, params }: Pick<DownlinkMessage, "method" | "params">) {
      if (!(yield* deliver(deviceId, { method, params }))) yield* publish({ _tag: "Deliver", deviceId, method, params })
    }
  )

  const cutOffHere = Effect.fnUntraced(function*({ deviceId, method, reason }: CutOff) {
    for (const listener of listeners) listener.cutOff?.(deviceId)
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

  /** Ends sessions that count no more; says of those that count nowhere that they are here. */
  const reconcile = Effect.fnUntraced(function*(all: ReadonlyArray<DeviceSession>) {
    for (let start = 0; start < all.length; start += reconcileLimit) {
      const some = all.slice(start, start + reconcileLimit)
      const counting = yield* untilStored(
        presence.connectionsOf(some.map(({ connection }) => connection.device.deviceId))
      )
      for (const session of some) {
        const { connection, id } = session
        const { deviceId } = connection.device
        const connectionId = counting.get(deviceId)
        if (connectionId === id || sessions.get(deviceId) !== session) continue
        if (connectionId !== undefined) yield* connection.close("replaced")
        else if ((yield* untilStored(presence.online(connection.device, { id, ip: connection.ip }))) === undefined) {
          yield* connection.close("disabled")
        }
      }
    }
  }, Effect.catchCause((cause) => Effect.logError("Sessions could not be compared with the store", cause)))

  const reconcileAll = Effect.suspend(() => reconcile(sessions.values().filter((session) => stored.has(session))))

  const heard = (notice: SessionNotice): Effect.Effect<void> => {
    switch (notice._tag) {
      case "CutOff":
        return cutOffHere(notice)
      case "Deliver":
        return Effect.asVoid(deliver(notice.deviceId, { method: notice.method, params: notice.params }))
      case "Replaced": {
        const session = sessions.get(notice.deviceId)
        return session !== undefined && stored.has(session) ? reconcile([session]) : Effect.void
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
    Effect.forEach(sessions.values(), ({ connection }) => connection.close("shutdown"), { discard: true })
  )

  return DeviceSessions.of({
    attach,
    detach,
    session: (deviceId) => sessions.get(deviceId),
    sessions: () => sessions.values(),
    listen: (listener) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      )),
    markOffline: presence.markOffline,
    markSeen: (device, ip) => sessions.get(device.deviceId) === undefined ? presence.markSeen(device, ip) : Effect.void,
    deliver,
    deliverAnywhere,
    connected: (deviceIds) => Effect.map(presence.connectionsOf(deviceIds), (all) => [...all.keys()]),
    cutOff
  })
})
