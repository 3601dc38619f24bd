/**
 * Delivers stored commands to the connections of devices, in order, and brings
 * what waits to a device that comes back (docs/protocol/commands.md).
 */
import { Clock, Context, Effect, Layer, Option, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { NodeBus } from "../cluster/NodeBus.ts"
import { CodecCache } from "../codec/CodecCache.ts"
import type { CodecMisfit } from "../codec/CodecDescription.ts"
import * as ProductCodec from "../codec/ProductCodec.ts"
import type { DeviceSession, DownlinkMessage } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { delta, type Shadow } from "../shadow/Shadow.ts"
import * as ShadowPush from "../shadow/ShadowPush.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import {
  type Command,
  type CommandState,
  finalRank,
  hasReply,
  maxDeliveries,
  methodOf,
  rankOf,
  rawTopic,
  setsProperties
} from "./Command.ts"
import { CommandLedger } from "./CommandLedger.ts"
import { CommandStore } from "./CommandStore.ts"
import * as DeliveryMachine from "./DeliveryMachine.ts"

export class CommandDelivery extends Context.Service<CommandDelivery, {
  /**
   * Returns whether the device has a connection on this node (`none`: no) and
   * whether a new command goes to it at once (`open`) or waits (`busy`).
   */
  readonly connectionOf: (deviceId: DeviceId) => "none" | "busy" | "open"
  /**
   * Delivers commands that have just been stored, and notifies other nodes of
   * those whose devices are not connected here.
   */
  readonly dispatch: (commands: ReadonlyArray<Command>) => Effect.Effect<void>
  /**
   * Returns the commands that wait for a device without a connection, oldest
   * first, at most 100, and notes them as sent.
   */
  readonly pull: (device: DeviceIdentity) => Effect.Effect<ReadonlyArray<DownlinkMessage>, StoreError>
}>()("@device-cloud/core/command/CommandDelivery") {
  static readonly layer: Layer.Layer<
    CommandDelivery,
    never,
    CommandStore | CodecCache | CommandLedger | ShadowStore | DeviceSessions | NodeBus
  > = Layer.effect(CommandDelivery, Effect.suspend(() => make))
}

/** Commands of one device that are read from the store at once. */
const readLimit = 100

/** How long a device without a connection may take to answer its last delivery, milliseconds. */
const pullGrace = 60_000

/** A node has stored a command for a device that is not connected to it. */
const CommandWaiting = NodeBus.channel("command/waiting", Schema.Struct({ deviceId: DeviceId }))

type Params = Readonly<Record<string, Json>>

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const ledger = yield* CommandLedger
  const shadows = yield* ShadowStore
  const codecs = yield* CodecCache
  const sessions = yield* DeviceSessions
  const waitingElsewhere = yield* CommandWaiting
  const pushShadow = yield* ShadowPush.make
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const deliveries = new WeakMap<DeviceSession, DeliveryMachine.Delivery>()

  const advance = ({ deviceId, messageId }: Command, state: CommandState, message = "") =>
    ledger.advance({ deviceId, messageId, state, code: null, message, data: {}, at: clock.currentTimeMillisUnsafe() })

  /** Keeps the next state of a delivery unless the session has ended, and returns what to do next. */
  const keep = (
    session: DeviceSession,
    [delivery, next]: readonly [DeliveryMachine.Delivery, DeliveryMachine.Next]
  ) => {
    if (deliveries.has(session)) deliveries.set(session, delivery)
    return next
  }

  const update = (session: DeviceSession, change: (delivery: DeliveryMachine.Delivery) => DeliveryMachine.Delivery) => {
    const delivery = deliveries.get(session)
    if (delivery !== undefined) deliveries.set(session, change(delivery))
  }

  const deliver = (session: DeviceSession, command: Command, params = command.params) =>
    Effect.suspend(() => {
      update(session, (delivery) => DeliveryMachine.delivered(delivery, command.messageId))
      return Effect.flatMap(
        Effect.orDie(untilStored(codecs.ofProduct(session.connection.device.productKey))),
        (codec) => {
          const bytes = bytesOf(command, params, codec)
          if (bytes !== undefined && Result.isFailure(bytes)) {
            return Effect.sync(() => advance(command, "failed", `the codec does not fit: ${bytes.failure.message}`))
          }
          const message = messageOf(command, params)
          return handOver(session, command, bytes === undefined ? message : { ...message, bytes: bytes.success })
        }
      )
    })

  const handOver = (session: DeviceSession, command: Command, message: DownlinkMessage) =>
    Effect.suspend(() => {
      const confirmed = () => advance(command, hasReply(command) ? "acked" : "succeeded")
      return session.connection.deliver(message, confirmed)
    })

  /** Delivers a command of the store and counts the delivery. */
  const deliverCounted = (session: DeviceSession, command: Command, params: Params) =>
    Effect.map(deliver(session, command, params), () => advance(command, "sent"))

  const dispatchOne = (command: Command): Effect.Effect<void> => {
    // A repeated call returns a command that may have ended.
    if (rankOf(command.state) === finalRank) return Effect.void
    const session = sessions.session(command.deviceId)
    // This look may end the wait of a reading, which goes on before the next line.
    const isBlocked = session?.connection.backlog() !== undefined
    const delivery = session === undefined ? undefined : deliveries.get(session)
    if (session === undefined || delivery === undefined) {
      if (command.expiresAt <= command.createdAt) advance(command, "expired", "the device is not connected")
      return Effect.void
    }
    switch (keep(session, DeliveryMachine.stored(delivery, command.messageId, isBlocked))) {
      case "deliver":
        return command.state === "queued"
          ? deliverCounted(session, command, command.params)
          : deliver(session, command)
      case "read":
        readBeside(session)
        return Effect.void
      case "nothing":
        return Effect.void
    }
  }

  /** Notifies other nodes: a device that is not connected here may be connected, or connecting, to one of them. */
  const notifyOthers = (commands: ReadonlyArray<Command>) => {
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

  /** Ends a command that the device has not answered. */
  const endUnanswered = (command: Command) =>
    advance(command, "failed", `the device has not answered ${command.deliveries} deliveries`)

  /** Returns the params to deliver; undefined: the device has reported all of them since, and the command ends. */
  const paramsLeft = (command: Command, shadow: Shadow): Params | undefined => {
    if (!setsProperties(command)) return command.params
    const params = stillWanted(command, shadow)
    if (Object.keys(params).length > 0) return params
    endOvertaken(command, shadow)
    return undefined
  }

  /** As `paramsLeft`. A command that the device has confirmed too often ends as well. */
  const paramsToDeliver = (command: Command, shadow: Shadow): Params | undefined => {
    const params = paramsLeft(command, shadow)
    if (params === undefined || command.state !== "acked" || command.deliveries < maxDeliveries) return params
    endUnanswered(command)
    return undefined
  }

  /** Delivers the next commands from the store and returns what to do next. */
  const readOnce = Effect.fnUntraced(function*(
    session: DeviceSession,
    shadow: Shadow
  ): Effect.fn.Return<DeliveryMachine.Next, StoreError> {
    const { connection } = session
    const { deviceId } = connection.device
    update(session, DeliveryMachine.beginRead)
    const commands = yield* untilStored(store.unfinished({
      deviceId,
      after: deliveries.get(session)?.lastDelivered ?? 0,
      now: yield* Clock.currentTimeMillis,
      limit: readLimit
    }))
    for (const command of commands) {
      const params = paramsToDeliver(command, shadow)
      if (params === undefined) {
        update(session, (delivery) => DeliveryMachine.delivered(delivery, command.messageId))
        continue
      }
      for (let room = connection.backlog(); room !== undefined; room = connection.backlog()) yield* room
      // The device has left while the command waited for it.
      if (!deliveries.has(session)) return "nothing"
      yield* deliverCounted(session, command, params)
    }
    const delivery = deliveries.get(session)
    if (delivery === undefined) return "nothing"
    // Runs in the same turn as the look at `deliveries` above.
    return commands.length > 0 ? "read" : keep(session, DeliveryMachine.readToEnd(delivery))
  })

  /** Delivers the waiting commands of the device from the store, in order, until none is left. */
  const read = Effect.fnUntraced(function*(session: DeviceSession) {
    const { deviceId } = session.connection.device
    const found = yield* untilStored(shadows.get(deviceId))
    if (Option.isNone(found)) return update(session, DeliveryMachine.readFailed)
    const shadow = found.value
    if (Object.keys(delta(shadow)).length > 0) yield* pushShadow(deviceId, shadow)
    let next: DeliveryMachine.Next = "read"
    while (next === "read" && sessions.session(deviceId) === session) next = yield* readOnce(session, shadow)
  })

  /** Runs `read` in its own fiber. */
  const readBeside = (session: DeviceSession) => {
    runFork(
      read(session).pipe(
        Effect.onError(() => Effect.sync(() => update(session, DeliveryMachine.readFailed))),
        Effect.catchCause((cause) => Effect.logError("The waiting commands of a device could not be delivered", cause))
      )
    )
  }

  yield* sessions.listen({
    // Commands that come while the device is attached wait in the store.
    attaching: (session) => deliveries.set(session, DeliveryMachine.starting),
    attached: (session, { waiting }) => {
      const delivery = deliveries.get(session)
      if (delivery !== undefined && keep(session, DeliveryMachine.attached(delivery, waiting)) === "read") {
        readBeside(session)
      }
    },
    detached: (session) => deliveries.delete(session)
  })

  /** Reads the store again for a device: another node may have stored a command. */
  const lookAgain = (session: DeviceSession | undefined) => {
    const delivery = session === undefined ? undefined : deliveries.get(session)
    if (session === undefined || delivery === undefined) return
    if (keep(session, DeliveryMachine.noticed(delivery)) === "read") readBeside(session)
  }
  yield* waitingElsewhere.subscribe({
    heard: ({ deviceId }) => Effect.sync(() => lookAgain(sessions.session(deviceId))),
    missed: Effect.sync(() => sessions.sessions().forEach(lookAgain))
  })

  return CommandDelivery.of({
    connectionOf: (deviceId) => {
      const session = sessions.session(deviceId)
      const isBlocked = session?.connection.backlog() !== undefined
      const delivery = session === undefined ? undefined : deliveries.get(session)
      if (delivery === undefined) return "none"
      return delivery.phase === "open" && !isBlocked ? "open" : "busy"
    },
    dispatch: (commands) =>
      Effect.andThen(notifyOthers(commands), Effect.forEach(commands, dispatchOne, { discard: true })),
    pull: Effect.fnUntraced(function*({ deviceId }) {
      if (sessions.session(deviceId) !== undefined) return []
      const shadow = yield* shadows.get(deviceId)
      if (Option.isNone(shadow)) return []
      const now = yield* Clock.currentTimeMillis
      const messages: Array<DownlinkMessage> = []
      for (const command of yield* store.unfinished({ deviceId, after: 0, now, limit: readLimit })) {
        const params = paramsLeft(command, shadow.value)
        if (params === undefined) continue
        if (command.deliveries >= maxDeliveries) {
          if (command.updatedAt + pullGrace <= now) endUnanswered(command)
          continue
        }
        messages.push(messageOf(command, params))
        advance(command, "sent")
      }
      return messages
    })
  })
})

/** The properties that the device has not reported since the call. */
const stillWanted = (command: Command, { reported }: Shadow): Params =>
  Object.fromEntries(
    Object.entries(command.params).filter(([id]) =>
      !Object.hasOwn(reported, id) || reported[id]!.time < command.createdAt
    )
  )

/** Returns what a raw device gets; undefined: the device gets JSON. */
const bytesOf = (
  command: Command,
  params: Params,
  codec: Option.Option<ProductCodec.ProductCodec>
): Result.Result<Uint8Array, CodecMisfit> | undefined => {
  const { userTopic } = command
  if (userTopic === rawTopic) return Result.succeed(Result.getOrThrow(Hex.decode(String(command.params["data"]))))
  if (userTopic !== null || Option.isNone(codec)) return undefined
  const encode = (params: Params) =>
    ProductCodec.encode(codec.value, "commands", { method: methodOf(command), id: command.messageId, params })
  const bytes = encode(params)
  // A message may need the properties, too, that the device has reported since.
  return Result.isFailure(bytes) && params !== command.params ? encode(command.params) : bytes
}

const messageOf = (command: Command, params: Params): DownlinkMessage => ({
  id: String(command.messageId),
  method: methodOf(command),
  params: command.userTopic === null || command.userTopic === rawTopic
    ? params
    : { ...params, topic: command.userTopic },
  ...command.synchronous ? { synchronous: true } : {}
})
