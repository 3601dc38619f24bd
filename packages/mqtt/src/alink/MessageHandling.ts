/**
 * Takes the messages of devices from the broker to the cloud, and the replies
 * back.
 */
import {
  DeviceReply,
  networkTime,
  SubDeviceSessions,
  Uplink,
  type UplinkExit,
  type UplinkMessage
} from "@device-cloud/core"
import type { AedesPublishPacket } from "aedes"
import { Cause, Clock, Effect, Exit } from "effect"
import type { Done } from "../protocol/DeviceBroker.ts"
import type { ConnectionState } from "../session/ConnectionState.ts"
import { countDropped, type TopicAccess } from "../session/TopicAccess.ts"
import { methodPrefix, type Router } from "../topics/TopicRouter.ts"
import { type AlinkRequest, decode, encodeReply, unreadable } from "./AlinkMessage.ts"

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

export const make = Effect.fnUntraced(function*(
  access: TopicAccess,
  route: Router
): Effect.fn.Return<MessageHandling, never, SubDeviceSessions | Uplink> {
  const subDevices = yield* SubDeviceSessions
  const uplink = yield* Uplink
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let underway = 0

  /** Hands a message to the cloud. If there is no room, the connection is not read until there is. */
  const submit = (state: ConnectionState, message: UplinkMessage, onEnd: (end: UplinkExit) => void) => {
    const handingOver = uplink.offer(message, onEnd)
    if (handingOver === undefined) return
    state.waiting++
    runFork(Effect.andThen(
      handingOver,
      Effect.sync(() => {
        state.waiting--
        state.read()
      })
    ))
  }

  // This runs for each message of each device: it forks no fiber for a message that the cloud takes at once.
  const handle = (state: ConnectionState, packet: AedesPublishPacket, handled: Done, confirms?: number) => {
    const { connection } = state
    if (connection === undefined) return handled(new Error("no device"))
    if (packet.payload.length > maxPayloadBytes) return handled(new Error("payload too large"))
    /** Ends a message that gets no reply. */
    const done: Done = confirms === undefined ? handled : (error) => {
      if (!error) connection.confirm(confirms)
      handled(error)
    }
    const ownRoute = connection.routeOf(packet.topic)
    const speaker = ownRoute === undefined ? access.speakerOf(connection, packet.topic) : connection.device
    if (speaker === undefined) return access.refuse(state, connection, packet.topic, done)
    const way = ownRoute ?? route(packet.topic, methodPrefix(speaker), speaker)
    if (way === undefined) {
      runFork(Effect.andThen(
        Effect.logDebug("A message on an unsupported topic was dropped", packet.topic),
        countDropped("unsupported topic")
      ))
      return done()
    }
    const maxQos = packet.qos === 0 && confirms === undefined ? 0 : 1
    const receivedAt = clock.currentTimeMillisUnsafe()
    const send = (payload: string | Buffer) => {
      connection.send(way.replyTopic, payload, maxQos, undefined, confirms)
      handled()
    }
    const reply = (request: AlinkRequest, said: DeviceReply.DeviceReply) =>
      send(encodeReply(way, request, said, receivedAt))
    const request = decode(way, packet.payload as Buffer)
    if ("code" in request) return way.replyTopic === "" ? done() : reply(unreadable, request)
    if (way.form === "time") {
      return send(JSON.stringify(networkTime(request.params, receivedAt, clock.currentTimeMillisUnsafe())))
    }
    underway++
    if (way.form === "session") {
      const { device, ip, session } = connection
      runFork(subDevices.answer(device, session, ip, way.method, request.params)).addObserver((exit) => {
        underway--
        if (request.wantsReply) reply(request, Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError)
        else done()
      })
      return
    }
    submit(state, { device: speaker, method: way.method, params: request.params, receivedAt }, (exit) => {
      underway--
      // Neither stored nor refused: the device keeps the message and sends it again.
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return done(new Error("not stored"))
      if (Exit.isFailure(exit)) runFork(Effect.logError("A message could not be stored", exit.cause))
      if (request.wantsReply) reply(request, Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError)
      else done()
    })
  }

  return {
    underway: () => underway,
    // A message that breaks the handling ends the connection of its device and nothing else.
    consume: (state, packet, done, confirms) => {
      try {
        handle(state, packet, done, confirms)
      } catch (defect) {
        runFork(Effect.logError("A message could not be handled", defect))
        done(new Error("not handled"))
      }
    }
  }
})
