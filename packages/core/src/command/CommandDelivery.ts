/**
 * Delivers stored commands to the connections of devices, in order, and brings
 * what waits to a device that comes back (docs/protocol/commands.md).
 */
import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { ProjectActivity } from "../activity/ProjectActivity.ts"
import { NodeBus } from "../cluster/NodeBus.ts"
import { CodecCache } from "../codec/CodecCache.ts"
import { type DeviceSession, type DownlinkMessage, hand } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { isReportedAfter, reportedAt, type Shadow } from "../shadow/Shadow.ts"
import * as ShadowPush from "../shadow/ShadowPush.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import {
  answerTime,
  type Command,
  type CommandState,
  hasReply,
  maxDeliveries,
  maxWaiting,
  setsProperties
} from "./Command.ts"
import { CommandAnswers } from "./CommandAnswers.ts"
import { CommandLedger } from "./CommandLedger.ts"
import { bytesOf, messageOf } from "./CommandMessage.ts"
import * as CommandNotices from "./CommandNotices.ts"
import { CommandStore, type Enqueued } from "./CommandStore.ts"
import * as DeliveryMachine from "./DeliveryMachine.ts"
import { DeliveryNotes } from "./DeliveryNotes.ts"
import { InFlight } from "./InFlight.ts"

export class CommandDelivery extends Context.Service<CommandDelivery, {
  /**
   * Returns the epoch of the device's session on this node if a new command goes
   * through it at once; undefined: there is none, or the command waits.
   */
  readonly openEpoch: (deviceId: DeviceId) => number | undefined
  /** Delivers commands that have just been stored, here or through the nodes that own the devices. */
  readonly dispatch: (commands: ReadonlyArray<Dispatched>) => Effect.Effect<void>
  /**
   * Ends some of the commands of a device, which has too many, that it has confirmed
   * long ago and not answered. Returns false if there are none.
   */
  readonly makeRoom: (deviceId: DeviceId) => Effect.Effect<boolean, StoreError>
  /**
   * Returns the commands that wait for a device without a connection, oldest
   * first, at most 100, and notes them as sent.
   */
  readonly pull: (device: DeviceIdentity) => Effect.Effect<ReadonlyArray<DownlinkMessage>, StoreError>
}>()("@device-cloud/core/command/CommandDelivery") {
  static readonly layer: Layer.Layer<
    CommandDelivery,
    never,
    | ProjectActivity
    | CommandStore
    | CommandAnswers
    | CodecCache
    | CommandLedger
    | ShadowStore
    | DeviceSessions
    | NodeBus
  > = Layer.effect(CommandDelivery, Effect.suspend(() => make))
}

/** A stored command, and what its caller wants. */
export interface Dispatched extends Enqueued {
  /** Whether the command ends if the device is not connected. */
  readonly onlyNow: boolean
  /** For how many seconds somebody on this node waits for its end. */
  readonly wait: number | undefined
}

/** Commands of one device that are read from the store at once. */
const readLimit = 100

/** Commands that end at once to make room. */
const roomLimit = 10

/** How long a device without a connection may take to answer its last delivery, milliseconds. */
const pullGrace = 60_000

type Params = Readonly<Record<string, Json>>

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const answers = yield* CommandAnswers
  const activity = yield* ProjectActivity
  const ledger = yield* CommandLedger
  const shadows = yield* ShadowStore
  const codecs = yield* CodecCache
  const sessions = yield* DeviceSessions
  const { nodeId } = yield* NodeBus
  const { pushDifference } = yield* ShadowPush.make
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Of sessions through which commands may be delivered. */
  const deliveries = new WeakMap<DeviceSession, DeliveryMachine.Delivery>()
  /** Of sessions through which commands were delivered. */
  const inFlight = new WeakMap<DeviceSession, InFlight>()
  const inFlightById = new Map<number, InFlight>()

  const advance = ({ deviceId, messageId, projectId }: Command, state: CommandState, message = "") => {
    if (state === "succeeded") activity.count(projectId, "replied")
    else if (state === "expired") activity.count(projectId, "expired")
    ledger.advance({ deviceId, messageId, state, code: null, message, data: {}, at: clock.currentTimeMillisUnsafe() })
  }

  /** Ends a command without a reply of its device. `why`: what the failure counts as. */
  const fail = (command: Command, why: "codec" | "no_reply", message: string) => {
    activity.count(command.projectId, "failed", 1, why)
    advance(command, "failed", message)
  }

  /** Keeps the next state of a delivery unless the session has ended, and returns what to do next. */
  const keep = (
    session: DeviceSession,
    [delivery, next]: readonly [DeliveryMachine.Delivery, DeliveryMachine.Next]
  ) => {
    if (!deliveries.has(session)) return "nothing"
    deliveries.set(session, delivery)
    return next
  }

  const update = (session: DeviceSession, change: (delivery: DeliveryMachine.Delivery) => DeliveryMachine.Delivery) => {
    const delivery = deliveries.get(session)
    if (delivery !== undefined) deliveries.set(session, change(delivery))
  }

  const note = (command: Command) => advance(command, "sent")

  const notes = new DeliveryNotes(note, (effect) => void runFork(effect))

  const confirmed = (command: Command) => {
    notes.before(command)
    advance(command, hasReply(command) ? "acked" : "succeeded")
  }

  /** Hands the command to the connection, unless the session has ended. `noted`: notes the delivery, of which the store does not know. */
  const deliver = Effect.fnUntraced(function*(
    session: DeviceSession,
    command: Command,
    params: Params,
    noted?: (command: Command) => void
  ) {
    const codec = yield* Effect.catchEager(
      untilStored(codecs.ofProduct(session.connection.device.productKey)),
      Effect.die
    )
    // Another session may have delivered the command while this node stood still.
    for (let doubt = sessions.doubt(); doubt !== undefined; doubt = sessions.doubt()) yield* doubt
    if (!deliveries.has(session)) return
    const bytes = bytesOf(command, params, codec)
    if (bytes !== undefined && Result.isFailure(bytes)) {
      return fail(command, "codec", `the codec does not fit: ${bytes.failure.message}`)
    }
    const message = messageOf(command, params)
    const onWay = inFlight.get(session) ?? new InFlight(inFlightById)
    inFlight.set(session, onWay)
    onWay.add(command.messageId)
    noted?.(command)
    const acknowledged = () => {
      if (!hasReply(command)) onWay.delete(command.messageId)
      confirmed(command)
    }
    yield* hand(session.connection, bytes === undefined ? message : { ...message, bytes: bytes.success }, acknowledged)
  })

  /** Delivers the command that comes next. */
  const deliverNext = (session: DeviceSession, command: Command) =>
    deliver(session, command, command.params, command.state === "queued" ? notes.later : undefined).pipe(
      Effect.andThen(Effect.sync(() => {
        const delivery = deliveries.get(session)
        if (delivery !== undefined) follow(session, DeliveryMachine.delivered(delivery, command.messageId))
      })),
      Effect.onError(() => Effect.sync(() => update(session, DeliveryMachine.readFailed)))
    )

  const follow = (session: DeviceSession, step: readonly [DeliveryMachine.Delivery, DeliveryMachine.Next]) => {
    if (keep(session, step) === "read") readBeside(session)
  }

  /** A command of the device is stored. Returns the effect that delivers it if it goes to the session at once. */
  const arrive = (session: DeviceSession, stored: DeliveryMachine.StoredCommand, command: Command | undefined) => {
    // This look may end the wait of a reading, which goes on before the next line.
    const isBlocked = session.connection.backlog() !== undefined
    const delivery = deliveries.get(session)
    if (delivery === undefined) return undefined
    const step = command === undefined
      ? DeliveryMachine.noticed(delivery, stored.messageId)
      : DeliveryMachine.stored(delivery, stored, isBlocked)
    if (command !== undefined && step[1] === "deliver") {
      keep(session, step)
      return deliverNext(session, command)
    }
    follow(session, step)
    return undefined
  }

  const notices = yield* CommandNotices.make((notice) =>
    Effect.sync(() => {
      const { awaited, deviceId, epoch, messageId, previous } = notice
      if (awaited !== undefined) answers.awaitedBy(awaited.nodeId, messageId, awaited.seconds)
      const session = sessions.session(deviceId)
      if (session === undefined || (session.epoch > 0 && session.epoch < epoch)) return
      const delivering = arrive(session, { messageId, previous }, CommandNotices.commandOf(notice))
      if (delivering !== undefined) runFork(delivering)
    })
  )

  /** Delivers a stored command. Its caller, and the callers of others, have it stored whatever a transport fails at. */
  const dispatchOne = (dispatched: Dispatched): Effect.Effect<void> =>
    Effect.catchCause(
      Effect.suspend(() => dispatching(dispatched)),
      (cause) => Effect.logError("A command could not be handed to the connection of its device", cause)
    )

  const dispatching = (dispatched: Dispatched): Effect.Effect<void> => {
    const { command, onlyNow, owner, previous, wait } = dispatched
    // A repeated call returns a command that was delivered before, or ended.
    if (previous === undefined) return Effect.void
    const { deviceId, messageId } = command
    const session = sessions.session(deviceId)
    if (owner === undefined && session?.epoch !== 0 && onlyNow) {
      advance(command, "expired", "the device is not connected")
    }
    const isOwner = session !== undefined && owner !== undefined && session.epoch >= owner.epoch
    if (owner !== undefined && owner.nodeId !== nodeId && !isOwner) {
      const awaited = wait === undefined ? undefined : { nodeId, seconds: wait }
      notices.tell(owner.nodeId, CommandNotices.noticeOf(dispatched, owner.epoch, awaited))
    }
    return session !== undefined && (isOwner || session.epoch === 0)
      ? arrive(session, { messageId, previous }, command) ?? Effect.void
      : Effect.void
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
    fail(command, "no_reply", `the device has not answered ${command.deliveries} deliveries`)

  /** Returns the params to deliver; undefined: the device has reported all of them since, and the command ends. */
  const paramsLeft = (command: Command, shadow: Shadow | undefined): Params | undefined => {
    if (shadow === undefined || !setsProperties(command)) return command.params
    const params = stillWanted(command, shadow, clock.currentTimeMillisUnsafe())
    if (Object.keys(params).length > 0) return params
    endOvertaken(command, shadow)
    return undefined
  }

  /** As `paramsLeft`. A command that the device has confirmed too often ends as well. */
  const paramsToDeliver = (command: Command, shadow: Shadow | undefined): Params | undefined => {
    const params = paramsLeft(command, shadow)
    if (params === undefined || command.state !== "acked" || command.deliveries < maxDeliveries) return params
    endUnanswered(command)
    return undefined
  }

  /** Delivers the next commands from the store and returns what to do next. */
  const readOnce = Effect.fnUntraced(function*(
    session: DeviceSession
  ): Effect.fn.Return<DeliveryMachine.Next, StoreError> {
    const { connection } = session
    const { deviceId } = connection.device
    const shadowOf = yield* Effect.cached(Effect.map(untilStored(shadows.get(deviceId)), Option.getOrUndefined))
    update(session, DeliveryMachine.beginRead)
    const commands = yield* untilStored(store.unfinished({
      deviceId,
      after: deliveries.get(session)?.lastKnown ?? 0,
      now: yield* Clock.currentTimeMillis,
      limit: readLimit
    }))
    for (const command of commands) {
      const shadow = setsProperties(command) ? yield* shadowOf : undefined
      const params = paramsToDeliver(command, shadow)
      if (params !== undefined) {
        let room = connection.backlog()
        if (room !== undefined) {
          for (; room !== undefined; room = connection.backlog()) yield* room
          // A command that waited may have ended, its device may have reported what it asks for, or have left.
          return deliveries.has(session) ? "read" : "nothing"
        }
        yield* deliver(session, command, params, note)
      }
      update(session, (delivery) => DeliveryMachine.known(delivery, command.messageId))
    }
    const delivery = deliveries.get(session)
    if (delivery === undefined) return "nothing"
    // Runs in the same turn as the look at `deliveries` above.
    return commands.length === readLimit ? "read" : keep(session, DeliveryMachine.readToEnd(delivery))
  })

  /** Delivers the waiting commands of the device from the store, in order, until none is left. */
  const read = Effect.fnUntraced(function*(session: DeviceSession) {
    const { deviceId } = session.connection.device
    let next: DeliveryMachine.Next = "read"
    while (next === "read" && sessions.session(deviceId) === session) next = yield* readOnce(session)
  })

  /** Tells a device that has connected what is desired of it, and delivers what waits for it. */
  const readFirst = Effect.fnUntraced(function*(session: DeviceSession) {
    yield* pushDifference(session.connection.device.deviceId)
    yield* read(session)
  })

  /** Reads in a fiber of its own. */
  const readBeside = (session: DeviceSession, reading = read) => {
    runFork(
      reading(session).pipe(
        Effect.onError(() => Effect.sync(() => update(session, DeliveryMachine.readFailed))),
        Effect.catchCause((cause) => Effect.logError("The waiting commands of a device could not be delivered", cause))
      )
    )
  }

  answers.onEnd((messageId) => inFlightById.get(messageId)?.delete(messageId))
  yield* sessions.listen({
    // Commands that come while the device is attached wait in the store.
    attaching: (session) => deliveries.set(session, DeliveryMachine.starting),
    attached: (session, { lastCommand, waiting }) => {
      const delivery = deliveries.get(session)
      if (delivery === undefined) return
      const next = keep(session, DeliveryMachine.attached(delivery, waiting, lastCommand))
      if (next === "read") readBeside(session, waiting ? readFirst : read)
    },
    handingOver: (session) => {
      deliveries.delete(session)
      return inFlight.get(session)?.landed ?? Effect.void
    },
    detached: (session) => {
      deliveries.delete(session)
      inFlight.get(session)?.clear()
    },
    settled: (session) =>
      Effect.suspend(() => {
        if (!inFlight.has(session)) return Effect.void
        notes.now()
        return ledger.settled(session.connection.device.deviceId)
      }),
    swept: (session, { lastCommand }) => {
      const delivery = deliveries.get(session)
      if (delivery !== undefined) follow(session, DeliveryMachine.noticed(delivery, lastCommand))
    }
  })

  return CommandDelivery.of({
    openEpoch: (deviceId) => {
      const session = sessions.session(deviceId)
      const isBlocked = session?.connection.backlog() !== undefined
      const delivery = session === undefined ? undefined : deliveries.get(session)
      return delivery?.phase === "open" && !isBlocked ? session!.epoch : undefined
    },
    dispatch: (commands) => Effect.forEach(commands, dispatchOne, { discard: true }),
    makeRoom: Effect.fnUntraced(function*(deviceId) {
      const now = yield* Clock.currentTimeMillis
      const waiting = yield* store.unfinished({ deviceId, after: 0, now, limit: maxWaiting })
      const unanswered = waiting.filter(({ state, updatedAt }) => state === "acked" && updatedAt + answerTime <= now)
      for (const command of unanswered.slice(0, roomLimit)) {
        fail(command, "no_reply", "the device has not answered, and others need the place")
      }
      if (unanswered.length > 0) yield* ledger.settled(deviceId)
      return unanswered.length > 0
    }),
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

/**
 * The properties that the device has not reported since the call. A report of the same
 * millisecond counts if it has the value: otherwise the call may be the later one.
 */
const stillWanted = ({ createdAt, params }: Command, { reported }: Shadow, now: number): Params =>
  Object.fromEntries(
    Object.entries(params).filter(([id, wanted]) => {
      if (!Object.hasOwn(reported, id)) return true
      const entry = reported[id]!
      const isSame = reportedAt(entry) === createdAt && equalJson(entry.value, wanted)
      return !isSame && !isReportedAfter(entry, createdAt, now)
    })
  )
