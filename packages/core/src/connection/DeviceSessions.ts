/**
 * Where the connected devices are. A transport attaches the connections of the
 * devices that it has authenticated; the cloud sends messages to devices and
 * ends connections through this service.
 */
import { Array, Context, Effect, Layer, Metric, Schema, type Scope, Semaphore, Stream } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DomainError } from "../kernel/DomainError.ts"
import * as Outage from "../kernel/Outage.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import {
  close,
  type DeviceConnection,
  type DeviceSession,
  DisconnectReason,
  disconnectSentences,
  type DownlinkMessage,
  endReasonOf,
  gaveUp,
  type SessionListener,
  tell
} from "./DeviceSession.ts"
import * as HandOver from "./HandOver.ts"
import { NodeSessions, type OwnedSession } from "./NodeSessions.ts"
import { Presence } from "./Presence.ts"
import { PresenceTimes } from "./PresenceTimes.ts"
import { type Doubts, reconcile } from "./SessionReconciliation.ts"
import * as Standstill from "./Standstill.ts"

export class DeviceSessions extends Context.Service<DeviceSessions, {
  /**
   * Sets the device online through `connection` until `detach`. An earlier session of
   * the same device ends, on whichever node: a device has one session.
   */
  readonly attach: (connection: DeviceConnection) => Effect.Effect<DeviceSession, DeviceNotConnectable | StoreError>
  /** Ends the session whose connection has ended. Waits until the status is stored. Without effect for a session that has ended. */
  readonly detach: (session: DeviceSession) => Effect.Effect<void>
  /**
   * Delivers nothing more to a session that is about to end, and waits 250 milliseconds
   * at most for the device to confirm what it was sent. The transport then closes the
   * connection, and calls `detach`.
   */
  readonly retire: (session: DeviceSession) => Effect.Effect<void>
  /**
   * Returns undefined while this process runs. If it has stood still, returns an effect
   * that waits until all sessions have been compared with the store: those of devices
   * that have moved have ended then.
   */
  readonly doubt: () => Effect.Effect<void> | undefined
  /**
   * Waits while there is doubt, and returns whether the device has a later session on another node: what it said in
   * this one before is older than what it says there.
   */
  readonly hasMoved: (session: DeviceSession) => Effect.Effect<boolean>
  /** Returns the session of the device on this node. */
  readonly session: (deviceId: DeviceId) => DeviceSession | undefined
  /** Returns how many devices have a session on this node. */
  readonly count: () => number
  /** Tells `listener` of all sessions on this node from now on, until the scope closes. */
  readonly listen: (listener: Partial<SessionListener>) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Sets a device online for five minutes that has sent something over a
   * transport without connections. Without effect while the device is connected.
   * `through`: as of a connection.
   */
  readonly markSeen: (
    device: DeviceIdentity,
    ip: string,
    through?: Pick<DeviceConnection, "transport" | "gateway">
  ) => Effect.Effect<void, StoreError>
  /**
   * Sets those of the devices offline that are online through `markSeen`. `reason`: why,
   * in a sentence for operators.
   */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>, reason: string) => Effect.Effect<void, StoreError>
  /**
   * Sets the devices of another node offline whose process is known to have ended, at
   * once: nodes wait nine seconds for one that is only silent.
   */
  readonly nodeEnded: (nodeId: string) => Effect.Effect<void>
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
  static readonly layer: Layer.Layer<DeviceSessions, never, Presence | NodeBus | DeviceLifecycle> = Layer
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
  /** The device has a later session, with this epoch on that node. */
  Replaced: { deviceId: DeviceId, epoch: Schema.Int, nodeId: Schema.String },
  /** The sessions of the device before that with this epoch have ended on the node that says so. */
  Released: { deviceId: DeviceId, epoch: Schema.Int }
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
  const outage = Outage.make("Other nodes cannot be told of devices")
  const { nodeId } = yield* NodeBus
  const lifecycle = yield* DeviceLifecycle
  const { sweep } = yield* PresenceTimes
  const scope = yield* Effect.scope
  const nodeSessions = new NodeSessions()
  const doubts: Doubts = new Map()
  let lastSession = 0
  let lastMessageId = 0

  const context = yield* Effect.context<never>()
  const count = () => connections.updateUnsafe(nodeSessions.size, context)
  count()

  const publish = (notices: ReadonlyArray<SessionNotice>, to?: string) => outage.attempted(channel.publish(notices, to))

  const handOver = yield* HandOver.make(nodeSessions, {
    replaced: (deviceId, epoch, to) => publish([{ _tag: "Replaced", deviceId, epoch, nodeId }], to),
    released: (deviceId, epoch, to) => publish([{ _tag: "Released", deviceId, epoch }], to)
  })

  /** Ends the session if the store has a later one of the device. */
  const endIfReplaced = Effect.fnUntraced(function*(session: OwnedSession) {
    const { deviceId } = session.connection.device
    const owner = (yield* untilStored(presence.connectionsOf([deviceId]))).get(deviceId)
    if (owner !== undefined && owner.epoch > session.epoch) yield* handOver.replace(session)
  }, Effect.catch((error) => Effect.logWarning("The owner of a device could not be found", error)))

  const attach = Effect.fnUntraced(function*(connection: DeviceConnection) {
    const { device } = connection
    const session: OwnedSession = { id: `${nodeId}-${++lastSession}`, connection, epoch: 0, epochBefore: 0 }
    // The session counts before its status is stored: `cutOff` finds a device that is disabled meanwhile.
    const previous = nodeSessions.open(session)
    const claim = yield* presence.online(session).pipe(
      Effect.onError(() =>
        Effect.sync(() => {
          nodeSessions.end(session, previous)
          // It may be stored all the same.
          doubts.set(device.deviceId, session)
        })
      ),
      // It is stored right now.
      Effect.onInterrupt(() => Effect.forkDetach(presence.offline(session, gaveUp)))
    )
    if (claim === undefined) {
      nodeSessions.end(session)
      if (previous !== undefined) yield* close(previous.connection, "disabled")
      return yield* new DeviceNotConnectable({ deviceId: device.deviceId })
    }
    session.epoch = claim.epoch
    session.epochBefore = claim.epochBefore
    count()
    const announce = () => {
      if (nodeSessions.isCurrent(session)) nodeSessions.announce(session, claim)
    }
    const elsewhere = claim.previous?.nodeId === nodeId ? undefined : claim.previous?.nodeId
    const others = handOver.begin(session, previous, elsewhere)
    if (others === undefined) announce()
    else {
      yield* others.pipe(
        // A node that has told nothing of the session before may have told nothing of a later one.
        Effect.flatMap((haveEnded) => haveEnded ? Effect.void : endIfReplaced(session)),
        Effect.andThen(Effect.sync(announce)),
        Effect.forkIn(scope)
      )
    }
    return session
  })

  const detach = Effect.fnUntraced(function*(session: DeviceSession) {
    const hasEnded = yield* handOver.end(session)
    count()
    if (hasEnded) yield* presence.offline(session, endReasonOf(session))
  })

  const deliver = Effect.fnUntraced(function*(deviceId: DeviceId, message: Omit<DownlinkMessage, "id">) {
    const session = nodeSessions.current(deviceId)
    if (session === undefined) return false
    lastMessageId = (lastMessageId % maxMessageId) + 1
    yield* tell(session.connection, { id: String(lastMessageId), ...message })
    return true
  })

  const disconnect = Effect.fnUntraced(function*(deviceId: DeviceId, reason: DisconnectReason) {
    const session = nodeSessions.current(deviceId)
    if (session !== undefined) yield* close(session.connection, reason)
  })

  /** Sends notices to the nodes that own the devices; to all nodes those of devices without an owner if `others` is set. */
  const tellOwners = Effect.fnUntraced(function*(
    notices: ReadonlyArray<CutOff | SessionNotice & { readonly _tag: "Deliver" }>,
    others: boolean
  ) {
    const owners = yield* presence.connectionsOf(notices.map(({ deviceId }) => deviceId))
    const byNode = Array.groupBy(notices, ({ deviceId }) => owners.get(deviceId)?.nodeId ?? "")
    for (const [owner, some] of Object.entries(byNode)) {
      if (owner !== "") yield* owner === nodeId ? Effect.void : publish(some, owner)
      else if (others) yield* publish(some)
    }
  }, Effect.catch((error) => Effect.logWarning("The owners of devices could not be found", error)))

  const deliverAnywhere = Effect.fnUntraced(
    function*(deviceId: DeviceId, { method, params }: Pick<DownlinkMessage, "method" | "params">) {
      if (yield* deliver(deviceId, { method, params })) return
      yield* tellOwners([{ _tag: "Deliver", deviceId, method, params }], false)
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
      // The store no longer knows where a deleted device was connected.
      yield* tellOwners(cutOffs, reason === "deleted")
      yield* presence.markOffline(deviceIds, disconnectSentences[reason]).pipe(
        Effect.catch((error) => Effect.logWarning("Devices without a connection could not be set offline", error))
      )
    }
  )

  const oneAtATime = yield* Semaphore.make(1)
  const reconcileAll = oneAtATime.withPermits(1)(reconcile(presence, nodeSessions, handOver.replace, doubts))
  const doubt = yield* Standstill.make(reconcileAll)

  const hasMoved = Effect.fnUntraced(function*({ connection, epoch }: DeviceSession) {
    for (let wait = doubt(); wait !== undefined; wait = doubt()) yield* wait
    const { deviceId } = connection.device
    if (nodeSessions.current(deviceId) !== undefined) return false
    const owner = (yield* untilStored(presence.connectionsOf([deviceId]))).get(deviceId)
    return owner !== undefined && owner.epoch > epoch
  }, Effect.catchCause((cause) => Effect.as(Effect.logError("Where a device is connected is not known", cause), false)))

  const heard = (notice: SessionNotice): Effect.Effect<void> => {
    switch (notice._tag) {
      case "CutOff":
        return cutOffHere(notice)
      case "Deliver":
        return Effect.asVoid(deliver(notice.deviceId, { method: notice.method, params: notice.params }))
      case "Replaced":
        return handOver.heardReplaced(notice.deviceId, notice.epoch, notice.nodeId)
      case "Released":
        return Effect.sync(() => handOver.heardReleased(notice.deviceId, notice.epoch))
    }
  }
  yield* channel.subscribe({ heard, missed: reconcileAll })
  yield* Effect.forkScoped(Stream.runForEach(presence.silences, () => reconcileAll))
  yield* reconcileAll.pipe(Periodic.every(sweep))

  const idsOf = (devices: ReadonlyArray<DeviceIdentity>) => devices.map(({ deviceId }) => deviceId)
  yield* lifecycle.register({
    stage: "connection",
    disabled: (devices) => cutOff(idsOf(devices), "disabled", "thing.disable"),
    deleting: () => Effect.succeed((devices) => cutOff(idsOf(devices), "deleted", "thing.delete"))
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach(nodeSessions.all(), ({ connection }) => close(connection, "shutdown"), {
      concurrency: "unbounded",
      discard: true
    })
  )

  return DeviceSessions.of({
    attach,
    detach,
    retire: handOver.retire,
    doubt,
    hasMoved,
    session: (deviceId) => nodeSessions.current(deviceId),
    count: () => nodeSessions.size,
    listen: (listener) => nodeSessions.listen(listener),
    markOffline: presence.markOffline,
    nodeEnded: presence.nodeEnded,
    markSeen: (device, ip, through) =>
      nodeSessions.current(device.deviceId) === undefined ? presence.markSeen(device, ip, through) : Effect.void,
    deliver,
    deliverAnywhere,
    connected: (deviceIds) =>
      Effect.map(
        presence.connectionsOf(deviceIds),
        (owners) => [...owners].flatMap(([deviceId, { enabled }]) => enabled ? [deviceId] : [])
      ),
    cutOff
  })
})
