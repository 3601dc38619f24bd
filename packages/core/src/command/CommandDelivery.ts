/**
 * Delivers stored commands to the connections of devices, in order, and brings
 * what waits to a device that comes back (docs/protocol/commands.md).
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceSession, DownlinkMessage } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { delta, type Shadow } from "../shadow/Shadow.ts"
import { shadowControl } from "../shadow/ShadowDocument.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { type Command, type CommandState, finalRank, methodOf, rankOf, setsProperties } from "./Command.ts"
import { CommandLedger } from "./CommandLedger.ts"
import { CommandStore } from "./CommandStore.ts"
import * as Delivery from "./Delivery.ts"

export class CommandDelivery extends Context.Service<CommandDelivery, {
  /** Whether the device has a connection on this node, and whether a new command goes to it at once. */
  readonly connectionOf: (deviceId: DeviceId) => "none" | "busy" | "open"
  /** Delivers commands that have just been stored, and tells other nodes of those whose devices are not here. */
  readonly dispatch: (commands: ReadonlyArray<Command>) => Effect.Effect<void>
  /** What waits for a device that fetches it over a transport without connections, oldest first, at most 100. */
  readonly pull: (device: DeviceIdentity) => Effect.Effect<ReadonlyArray<DownlinkMessage>, StoreError>
}>()("@device-cloud/core/command/CommandDelivery") {
  static readonly layer: Layer.Layer<
    CommandDelivery,
    never,
    CommandStore | CommandLedger | ShadowStore | DeviceSessions | NodeBus
  > = Layer.effect(CommandDelivery, Effect.suspend(() => make))
}

/** Commands that are read at once for a device. */
const readLimit = 100

/** Commands that a node stores for devices that are not connected to it. */
const CommandWaiting = NodeBus.channel("command/waiting", Schema.Struct({ deviceId: DeviceId }))

type Params = Readonly<Record<string, Json>>

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const ledger = yield* CommandLedger
  const shadows = yield* ShadowStore
  const sessions = yield* DeviceSessions
  const waitingElsewhere = yield* CommandWaiting
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const deliveries = new WeakMap<DeviceSession, Delivery.Delivery>()

  const advance = ({ deviceId, messageId }: Command, state: CommandState, message = "") =>
    ledger.advance({ deviceId, messageId, state, code: null, message, data: {}, at: clock.currentTimeMillisUnsafe() })

  /** Keeps the delivery of a session that has not ended, and returns what to do next. */
  const keep = (session: DeviceSession, [delivery, next]: readonly [Delivery.Delivery, Delivery.Next]) => {
    if (deliveries.has(session)) deliveries.set(session, delivery)
    return next
  }

  const update = (session: DeviceSession, change: (delivery: Delivery.Delivery) => Delivery.Delivery) => {
    const delivery = deliveries.get(session)
    if (delivery !== undefined) deliveries.set(session, change(delivery))
  }

  const deliver = (session: DeviceSession, command: Command, params = command.params) =>
    Effect.suspend(() => {
      update(session, (delivery) => Delivery.delivered(delivery, command.messageId))
      const message = messageOf(command, params)
      const confirmed = () => advance(command, command.userTopic === null ? "acked" : "succeeded")
      return Effect.map(session.connection.deliver(message, confirmed), () => {
        if (command.state === "queued") advance(command, "sent")
      })
    })

  const dispatchOne = (command: Command): Effect.Effect<void> => {
    // Called once more, after it has ended.
    if (rankOf(command.state) === finalRank) return Effect.void
    const session = sessions.session(command.deviceId)
    const delivery = session === undefined ? undefined : deliveries.get(session)
    if (session === undefined || delivery === undefined) {
      if (command.expiresAt <= command.createdAt) advance(command, "expired", "the device is not connected")
      return Effect.void
    }
    const isBlocked = session.connection.backlog() !== undefined
    switch (keep(session, Delivery.stored(delivery, command.messageId, isBlocked))) {
      case "deliver":
        return deliver(session, command)
      case "read":
        readBeside(session)
        return Effect.void
      case "nothing":
        return Effect.void
    }
  }

  /** The device of each may be connecting to another node right now. */
  const tellOthers = (commands: ReadonlyArray<Command>) => {
    const deviceIds = new Set(
      commands.map(({ deviceId }) => deviceId).filter((id) => sessions.session(id) === undefined)
    )
    return deviceIds.size === 0
      ? Effect.void
      : waitingElsewhere.publish([...deviceIds].map((deviceId) => ({ deviceId }))).pipe(
        Effect.catch((error) => Effect.logWarning("Other nodes could not be told of commands", error))
      )
  }

  /** Ends a command all of whose properties the device has reported since the call. */
  const endOvertaken = (command: Command, { reported }: Shadow) => {
    const reached = Object.entries(command.params).every(([id, value]) => equalJson(reported[id]!.value, value))
    advance(
      command,
      reached ? "succeeded" : "cancelled",
      reached ? "the device has reported these values" : "the device has reported later values"
    )
  }

  /** The params that are still to be delivered; undefined: the device has overtaken the command, which ends. */
  const paramsLeft = (command: Command, shadow: Shadow): Params | undefined => {
    if (!setsProperties(command)) return command.params
    const params = stillWanted(command, shadow)
    if (Object.keys(params).length > 0) return params
    endOvertaken(command, shadow)
    return undefined
  }

  const readOnce = Effect.fnUntraced(function*(
    session: DeviceSession,
    shadow: Shadow
  ): Effect.fn.Return<Delivery.Next, StoreError> {
    const { connection } = session
    const { deviceId } = connection.device
    update(session, Delivery.beginRead)
    const commands = yield* untilStored(store.undelivered({
      deviceId,
      after: deliveries.get(session)?.lastDelivered ?? 0,
      now: yield* Clock.currentTimeMillis,
      limit: readLimit
    }))
    for (const command of commands) {
      yield* connection.backlog() ?? Effect.void
      const params = paramsLeft(command, shadow)
      if (params === undefined) update(session, (delivery) => Delivery.delivered(delivery, command.messageId))
      else yield* deliver(session, command, params)
    }
    const delivery = deliveries.get(session)
    if (delivery === undefined) return "nothing"
    // In one turn with the last look at the delivery.
    return commands.length > 0 ? "read" : keep(session, Delivery.readToEnd(delivery))
  })

  /** Delivers what the store holds for the device, in order, until nothing is left. */
  const read = Effect.fnUntraced(function*(session: DeviceSession) {
    const { deviceId } = session.connection.device
    const found = yield* untilStored(shadows.get(deviceId))
    if (Option.isNone(found)) return update(session, Delivery.readFailed)
    const shadow = found.value
    if (Object.keys(delta(shadow)).length > 0) yield* sessions.deliver(deviceId, shadowControl(shadow))
    let next: Delivery.Next = "read"
    while (next === "read" && sessions.session(deviceId) === session) next = yield* readOnce(session, shadow)
  })

  const readBeside = (session: DeviceSession) => {
    runFork(
      read(session).pipe(
        Effect.onError(() => Effect.sync(() => update(session, Delivery.readFailed))),
        Effect.catchCause((cause) => Effect.logError("The waiting commands of a device could not be delivered", cause))
      )
    )
  }

  yield* sessions.listen({
    // What is called for it meanwhile waits in the store.
    attaching: (session) => deliveries.set(session, Delivery.starting),
    attached: (session, waiting) => {
      const delivery = deliveries.get(session)
      if (delivery !== undefined && keep(session, Delivery.attached(delivery, waiting)) === "read") readBeside(session)
    },
    detached: (session) => deliveries.delete(session)
  })

  const lookAgain = (session: DeviceSession | undefined) => {
    const delivery = session === undefined ? undefined : deliveries.get(session)
    if (session === undefined || delivery === undefined) return
    if (keep(session, Delivery.noticed(delivery)) === "read") readBeside(session)
  }
  yield* waitingElsewhere.subscribe({
    heard: ({ deviceId }) => Effect.sync(() => lookAgain(sessions.session(deviceId))),
    missed: Effect.sync(() => sessions.sessions().forEach(lookAgain))
  })

  return CommandDelivery.of({
    connectionOf: (deviceId) => {
      const session = sessions.session(deviceId)
      const delivery = session === undefined ? undefined : deliveries.get(session)
      if (delivery === undefined) return "none"
      return delivery.phase === "open" ? "open" : "busy"
    },
    dispatch: (commands) =>
      Effect.andThen(tellOthers(commands), Effect.forEach(commands, dispatchOne, { discard: true })),
    pull: Effect.fnUntraced(function*({ deviceId }) {
      if (sessions.session(deviceId) !== undefined) return []
      const shadow = yield* shadows.get(deviceId)
      if (Option.isNone(shadow)) return []
      const now = yield* Clock.currentTimeMillis
      const messages: Array<DownlinkMessage> = []
      for (const command of yield* store.undelivered({ deviceId, after: 0, now, limit: readLimit })) {
        const params = paramsLeft(command, shadow.value)
        if (params === undefined) continue
        messages.push(messageOf(command, params))
        if (command.state === "queued") advance(command, "sent")
      }
      return messages
    })
  })
})

/** Those of the properties that the device has not reported itself since the call. */
const stillWanted = (command: Command, { reported }: Shadow): Params =>
  Object.fromEntries(
    Object.entries(command.params).filter(([id]) =>
      !Object.hasOwn(reported, id) || reported[id]!.time < command.createdAt
    )
  )

const messageOf = (command: Command, params: Params): DownlinkMessage => ({
  id: String(command.messageId),
  method: methodOf(command),
  params: command.userTopic === null ? params : { ...params, topic: command.userTopic }
})
