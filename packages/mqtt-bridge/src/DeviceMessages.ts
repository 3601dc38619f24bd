/**
 * Takes the messages of devices from the broker to the cloud, and the replies back.
 */
import {
  type AlinkRequest,
  bytesOf,
  decode,
  encodeReply,
  makeRouter,
  methodPrefix,
  type Owner,
  ownerOf,
  type Route,
  unreadable
} from "@device-cloud/alink"
import {
  DeviceAuthenticator,
  type DeviceIdentity,
  deviceKey,
  DeviceMethods,
  DeviceReply,
  DeviceSessions,
  HistoryFollowsFeed,
  HistoryStore,
  networkTime,
  type StoreError,
  untilStored,
  Uplink,
  UplinkRates,
  UplinkTrace
} from "@device-cloud/core"
import { Cause, Clock, Effect, Exit, Metric, Option, Queue, Schedule, type Scope } from "effect"
import { BrokerLink, type BrokerMessage } from "./BrokerLink.ts"
import { isStored } from "./Redelivery.ts"

/** The messages of one share, in the order of the broker. */
export interface DeviceMessages {
  readonly take: (message: BrokerMessage) => void
  /** Waits until the messages so far are settled. */
  readonly drained: Effect.Effect<void>
}

/** What operators read about how the devices are connected. */
export const transport = "mqtt-bridge"

/** Bytes of a message; a larger one has no effect. */
const maxPayloadBytes = 256 * 1024
/** Messages whose devices are looked up together. */
const maxTogether = 256
/** How long messages wait for a history that follows the feed, for which no device waits. */
const historyPatience = "2 seconds"
/** A device without a connection that the cloud knows of is seen at most once in this time, milliseconds. */
const sightingMillis = 60_000
/** Devices whose sightings are remembered. */
const maxSighted = 100_000

const dropped = Metric.counter("device_cloud_mqtt_bridge_dropped_total", {
  description: "Messages from the broker without effect, by reason",
  incremental: true
})

/** Makes what opens a share. It stops working when the scope of the share closes. */
export const make = Effect.gen(function*() {
  const authenticator = yield* DeviceAuthenticator
  const methods = yield* DeviceMethods
  const sessions = yield* DeviceSessions
  const history = yield* HistoryStore
  const followsFeed = yield* HistoryFollowsFeed
  const uplink = yield* Uplink
  const rates = yield* UplinkRates
  const trace = yield* UplinkTrace
  const link = yield* BrokerLink
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const route = makeRouter((method) => methods.find(method)?.form)
  /** When devices without a session here were last seen, Unix milliseconds. */
  const sighted = new Map<string, number>()

  const drop = (message: BrokerMessage, reason: string) => {
    runFork(Metric.update(Metric.withAttributes(dropped, { reason }), 1))
    message.settle()
  }

  /** A device that was connected before the cloud heard of connections is online by what it says. */
  const see = (device: DeviceIdentity, now: number) => {
    if (sessions.session(device.deviceId) !== undefined || now - (sighted.get(device.deviceId) ?? 0) < sightingMillis) {
      return
    }
    if (sighted.size >= maxSighted) sighted.clear()
    sighted.set(device.deviceId, now)
    runFork(Effect.ignore(sessions.markSeen(device, "", { transport: "mqtt-bridge" })))
  }

  /** What is delivered again has the same time. */
  const timeOf = ({ takenAt }: BrokerMessage, now: number) => Math.min(now, takenAt ?? now)

  /** Finds those of the messages that are delivered again and stored. A history that follows the feed may not know, or be away. */
  const findStored = Effect.fnUntraced(function*(messages: ReadonlyArray<readonly [BrokerMessage, DeviceIdentity]>) {
    const again = Effect.forEach(
      messages.filter(([{ isRedelivered }]) => isRedelivered),
      ([message, device]) => {
        const way = route(message.topic, methodPrefix(device), device)
        return way === undefined
          ? Effect.succeed([])
          : Effect.map(
            isStored(history, device, way, message.payload, timeOf(message, clock.currentTimeMillisUnsafe())),
            (is) => is ? [message] : []
          )
      },
      { concurrency: 16 }
    )
    const found = followsFeed
      ? again.pipe(
        Effect.timeoutOption(historyPatience),
        Effect.map(Option.getOrElse(() => [])),
        Effect.orElseSucceed(() => [])
      )
      : tryAgain(again)
    return new Set((yield* found).flat())
  })

  const handle = (message: BrokerMessage, device: DeviceIdentity, isStored: boolean, onEnd: () => void) => {
    const end = () => {
      message.settle()
      onEnd()
    }
    const way = route(message.topic, methodPrefix(device), device)
    if (way === undefined || message.payload.length > maxPayloadBytes) {
      drop(message, way === undefined ? "unsupported topic" : "payload too large")
      return onEnd()
    }
    const now = clock.currentTimeMillisUnsafe()
    see(device, now)
    const receivedAt = timeOf(message, now)
    const note = (said: DeviceReply.DeviceReply, about?: { readonly method: string; readonly params: unknown }) => {
      const { payload, topic } = message
      if (trace.isOn()) trace.note({ device, transport, topic, payload, receivedAt, ...about }, said)
    }
    const reply = (request: AlinkRequest, said: DeviceReply.DeviceReply) => {
      if (request.wantsReply && way.replyTopic !== "") {
        link.send(way.replyTopic, bytesOf(encodeReply(way, request, said, receivedAt)))
      }
      end()
    }
    const request = decode(way, message.payload)
    if ("code" in request) {
      note(request)
      return reply(unreadable, request)
    }
    if (isStored) return reply(request, DeviceReply.success({}))
    const answered = answerAtOnce(way, request, device, message.payload.length)
    if (answered !== undefined) {
      note(answered)
      return reply(request, answered)
    }
    if (way.form === "time") {
      note(DeviceReply.success({}))
      link.send(
        way.replyTopic,
        Buffer.from(JSON.stringify(networkTime(request.params, now, clock.currentTimeMillisUnsafe())))
      )
      return end()
    }
    const bytes = message.payload.length
    const said = { device, carrier: device, method: way.method, params: request.params, receivedAt, bytes }
    // Messages that are not settled are bounded: the broker holds back what finds no room.
    const room = uplink.offer(said, (exit) => {
      // Neither stored nor refused: it stays with the broker.
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return onEnd()
      if (Exit.isFailure(exit)) runFork(Effect.logError("A message could not be stored", exit.cause))
      const answer = Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError
      note(answer, said)
      reply(request, answer)
    })
    if (room !== undefined) runFork(room)
  }

  /** Returns the reply to a message that the cloud does not take; undefined: it does. */
  const answerAtOnce = (way: Route, request: AlinkRequest, device: DeviceIdentity, bytes: number) => {
    if (way.form === "session") return DeviceReply.failure(520, "gateways connect to the cloud itself")
    if (rates.admits(device, bytes)) return undefined
    if (request.wantsReply && way.form !== "time") return DeviceReply.tooManyRequests
    rates.charge(device, 1, bytes)
    return undefined
  }

  const lookUp = (owners: ReadonlyArray<Owner>) =>
    Effect.forEach(
      new Map(owners.map((owner) => [deviceKey(owner), owner])),
      ([key, owner]) => Effect.map(authenticator.admitted(owner), (found) => [key, found] as const),
      { concurrency: "unbounded" }
    ).pipe(
      tryAgain,
      Effect.map((found) =>
        new Map(found.flatMap(([key, device]) => Option.isSome(device) ? [[key, device.value]] : []))
      )
    )

  return Effect.gen(function*(): Effect.fn.Return<DeviceMessages, never, Scope.Scope> {
    const queue = yield* Queue.unbounded<BrokerMessage>()
    let underway = 0
    const onEnd = () => void underway--

    yield* Effect.gen(function*() {
      const messages = yield* Queue.takeBetween(queue, 1, maxTogether)
      const owners = messages.map(({ topic }) => ownerOf(topic))
      const devices = yield* lookUp(owners.filter((owner) => owner !== undefined))
      const found = messages.map((message, i) => {
        const owner = owners[i]
        return [message, owner && devices.get(deviceKey(owner))] as const
      })
      const stored = yield* findStored(found.flatMap(([message, device]) => device ? [[message, device]] : []))
      for (const [message, device] of found) {
        if (device !== undefined) handle(message, device, stored.has(message), onEnd)
        else {
          drop(message, "unknown device")
          onEnd()
        }
      }
    }).pipe(Effect.forever, Effect.forkScoped)

    return {
      take: (message) => {
        underway++
        Queue.offerUnsafe(queue, message)
      },
      drained: Effect.sync(() => underway).pipe(
        Effect.repeat({ while: (count) => count > 0, schedule: Schedule.spaced("10 millis") }),
        Effect.asVoid
      )
    }
  })
})

/** Tries again until the store can say it: the messages of the share wait. */
const tryAgain = <A>(effect: Effect.Effect<A, StoreError>): Effect.Effect<A> =>
  untilStored(effect).pipe(
    Effect.tapError((error) => Effect.logError("Messages of the broker wait for the store", error)),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.orDie
  )
