/**
 * Takes the messages of devices from the broker to the cloud, and the replies
 * back.
 */
import {
  type AlinkRequest,
  decode,
  encodeReply,
  methodPrefix,
  ownerKey,
  type Payload,
  type Router,
  unreadable,
  userTopicPrefix
} from "@device-cloud/alink"
import {
  type DeviceIdentity,
  DeviceReply,
  DeviceSessions,
  networkTime,
  printable,
  SubDeviceSessions,
  Uplink,
  type UplinkExit,
  type UplinkMessage,
  UplinkRates,
  UplinkTrace
} from "@device-cloud/core"
import type { AedesPublishPacket } from "aedes"
import { Cause, Clock, Effect, Exit } from "effect"
import type { Done } from "../protocol/DeviceBroker.ts"
import type { ConnectionState } from "./ConnectionState.ts"
import type { MqttConnection } from "./MqttConnection.ts"
import { countDropped, type TopicAccess } from "./TopicAccess.ts"

export interface MessageHandling {
  /**
   * Handles a message of the connection's device. `done` is called after the
   * message has been stored and its reply has been sent. `confirms`: the packet
   * identifier of a QoS 1 packet, which is confirmed together with the reply.
   */
  readonly consume: (state: ConnectionState, packet: AedesPublishPacket, done: Done, confirms?: number) => void
  /** Returns how many messages of all connections are on their way to the store. */
  readonly underway: () => number
}

/** Bytes in the payload of a PUBLISH; a larger one ends the connection. */
export const maxPayloadBytes = 256 * 1024

/** A device above its rate is not read for this long at a time, milliseconds; then it is looked at again. */
const maxPause = 1000

/** What a trace says of messages that get no reply. */
const foreignTopic = DeviceReply.failure(
  403,
  "the topic belongs to another device, or to a sub-device without a session"
)
const unsupportedTopic = DeviceReply.failure(404, "no message of a device comes on this topic")

// A class and no literal: V8 allocates literals that wait for a commit as old objects (docs/decisions/0125-pauses.md).
class DeviceMessage implements UplinkMessage {
  readonly device: DeviceIdentity
  readonly carrier: DeviceIdentity
  readonly method: string
  readonly params: unknown
  readonly receivedAt: number
  readonly bytes: number

  constructor(
    device: DeviceIdentity,
    carrier: DeviceIdentity,
    method: string,
    params: unknown,
    receivedAt: number,
    bytes: number
  ) {
    this.device = device
    this.carrier = carrier
    this.method = method
    this.params = params
    this.receivedAt = receivedAt
    this.bytes = bytes
  }
}

export const make = Effect.fnUntraced(function*(
  access: TopicAccess,
  route: Router
): Effect.fn.Return<MessageHandling, never, DeviceSessions | SubDeviceSessions | Uplink | UplinkRates | UplinkTrace> {
  const sessions = yield* DeviceSessions
  const subDevices = yield* SubDeviceSessions
  const uplink = yield* Uplink
  const rates = yield* UplinkRates
  const trace = yield* UplinkTrace
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let underway = 0

  /** Does not read the connection until `until` ends. */
  const holdBack = (state: ConnectionState, until: Effect.Effect<void>) => {
    state.waiting++
    runFork(Effect.andThen(
      until,
      Effect.sync(() => {
        state.waiting--
        state.read()
      })
    ))
  }

  /** Hands a message to the cloud. If there is no room for more, the connection is not read until there is. */
  const submit = (state: ConnectionState, message: UplinkMessage, onEnd: (end: UplinkExit) => void) => {
    const room = uplink.offer(message, onEnd)
    if (room !== undefined) holdBack(state, room)
  }

  /** Connections that are not read because their devices are above their rates. */
  const resting = new Set<ConnectionState>()

  const untilRested = (state: ConnectionState, device: DeviceIdentity): Effect.Effect<void> =>
    Effect.suspend(() => {
      const pause = rates.pause(device)
      if (pause > 0 && !state.stream.destroyed) {
        return Effect.andThen(Effect.sleep(Math.min(pause, maxPause)), untilRested(state, device))
      }
      resting.delete(state)
      return Effect.void
    })

  /** Counts a message. Returns false if the device is above its rate; its connection is then read slower. */
  const isWithinRate = (state: ConnectionState, device: DeviceIdentity, bytes: number): boolean => {
    if (rates.admits(device, bytes)) return true
    if (!resting.has(state)) {
      resting.add(state)
      holdBack(state, untilRested(state, device))
    }
    return false
  }

  // This runs for each message of each device: it forks no fiber for a message that the cloud takes at once.
  const handle = (
    state: ConnectionState,
    connection: MqttConnection,
    packet: AedesPublishPacket,
    handled: Done,
    confirms?: number
  ) => {
    if (packet.payload.length > maxPayloadBytes) return handled(new Error("payload too large"))
    /** Ends a message that gets no reply. */
    const done: Done = confirms === undefined ? handled : (error) => {
      if (!error) connection.confirm(confirms)
      handled(error)
    }
    const carrier = connection.device
    const bytes = packet.payload.length
    const isWithin = isWithinRate(state, carrier, bytes)
    const ownRoute = connection.routeOf(packet.topic)
    const speaker = ownRoute === undefined ? access.speakerOf(connection, packet.topic) : carrier
    const receivedAt = clock.currentTimeMillisUnsafe()
    /** Notes the message with the answer to it; undefined: no device is traced. */
    const note = trace.isOn()
      ? (said: DeviceReply.DeviceReply, about?: { readonly method: string; readonly params: unknown }) => {
        const { transport } = connection
        const { payload, topic } = packet as AedesPublishPacket & { readonly payload: Buffer }
        trace.note({ device: speaker ?? carrier, carrier, transport, topic, payload, receivedAt, ...about }, said)
      }
      : undefined
    if (speaker === undefined) {
      note?.(foreignTopic)
      return access.refuse(state, connection, packet.topic, done)
    }
    const way = ownRoute ?? route(packet.topic, methodPrefix(speaker), speaker)
    if (way === undefined) {
      note?.(unsupportedTopic)
      runFork(Effect.andThen(
        Effect.logDebug("A message on an unsupported topic was dropped", printable(packet.topic)),
        countDropped("unsupported topic")
      ))
      return done()
    }
    const maxQos = packet.qos === 0 && confirms === undefined ? 0 : 1
    connection.readiness.heard(receivedAt)
    const send = (payload: Payload) => {
      connection.send(way.replyTopic, payload, maxQos, undefined, confirms)
      // The device that reads its shadow gets the reply first.
      if (way.form === "shadow") connection.readiness.usesShadow(ownerKey(way.replyTopic))
      handled()
    }
    const reply = (request: AlinkRequest, said: DeviceReply.DeviceReply) =>
      connection.whenRoom((isOpen) => isOpen ? send(encodeReply(way, request, said, receivedAt)) : handled())
    /** Sends a message on a user topic to its own device, if that has subscribed to the topic. */
    const echo = (userTopic: string) => {
      const topic = userTopicPrefix(speaker) + userTopic
      if (connection.subscriptions.granted(topic) === undefined) return done()
      connection.whenRoom((isOpen) => {
        if (isOpen) connection.send(topic, packet.payload as Buffer, maxQos, undefined, confirms)
        handled()
      })
    }
    const request = decode(way, packet.payload as Buffer)
    if ("code" in request) {
      note?.(request)
      return way.replyTopic === "" ? done() : reply(unreadable, request)
    }
    if (!isWithin) {
      if (request.wantsReply && way.form !== "time") {
        runFork(countDropped("above the rate"))
        note?.(DeviceReply.tooManyRequests)
        return reply(request, DeviceReply.tooManyRequests)
      }
      rates.charge(carrier, 1, bytes)
    }
    if (way.form === "time") {
      note?.(DeviceReply.success({}))
      return send(JSON.stringify(networkTime(request.params, receivedAt, clock.currentTimeMillisUnsafe())))
    }
    underway++
    if (way.form === "session") {
      const { device, ip, session } = connection
      runFork(subDevices.answer(device, session, ip, way.method, request.params)).addObserver((exit) => {
        underway--
        const said = Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError
        note?.(said)
        if (request.wantsReply) reply(request, said)
        else done()
      })
      return
    }
    const message = new DeviceMessage(speaker, carrier, way.method, request.params, receivedAt, bytes)
    submit(state, message, (exit) => {
      underway--
      // Neither stored nor refused: the device keeps the message and sends it again.
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return done(new Error("not stored"))
      if (Exit.isFailure(exit)) runFork(Effect.logError("A message could not be stored", exit.cause))
      const said = Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError
      note?.(said, message)
      if (request.wantsReply) reply(request, said)
      else if (way.userTopic !== undefined && Exit.isSuccess(exit)) echo(way.userTopic)
      else done()
    })
  }

  /** Handles a message. One that breaks the handling ends the connection of its device and nothing else. */
  const take = (
    state: ConnectionState,
    connection: MqttConnection,
    packet: AedesPublishPacket,
    done: Done,
    confirms?: number
  ) => {
    try {
      handle(state, connection, packet, done, confirms)
    } catch (defect) {
      runFork(Effect.logError("A message could not be handled", defect))
      done(new Error("not handled"))
    }
  }

  /** Takes the doubtful messages of a connection when it is known whether its device has moved. */
  const untilKnown = Effect.fnUntraced(function*(state: ConnectionState, { session }: MqttConnection) {
    const hasMoved = session !== undefined && (yield* sessions.hasMoved(session))
    const doubtful = state.doubtful ?? []
    state.doubtful = undefined
    for (const known of doubtful) known(hasMoved)
  })

  return {
    underway: () => underway,
    consume: (state, packet, done, confirms) => {
      const { connection } = state
      if (connection === undefined) return done(new Error("no device"))
      if (state.doubtful === undefined) {
        if (sessions.doubt() === undefined) return take(state, connection, packet, done, confirms)
        state.doubtful = []
        holdBack(state, untilKnown(state, connection))
      }
      // What lay unread while the process stood still is older than what the device says elsewhere by now.
      state.doubtful.push((hasMoved) =>
        hasMoved ? done(new Error("the device has moved")) : take(state, connection, packet, done, confirms)
      )
    }
  }
})
