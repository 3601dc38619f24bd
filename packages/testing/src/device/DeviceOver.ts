/**
 * A simulated device on any link: what it says, and how what it hears reaches its
 * handlers.
 */
import { type DownlinkMessage, type Json, upgradeMethod, userMethod } from "@device-cloud/core"
import { Cause, Clock, Effect, Latch, PartitionedSemaphore, Queue, type Scope } from "effect"
import type { Behaviour, SimulatedDevice } from "../SimulatedDevice.ts"
import { checkTriple, type DeviceLink, type DeviceTriple, type Incoming, type OpenLink } from "./DeviceLink.ts"
import { userParams } from "./DeviceTopics.ts"
import { makeReaction, type Values } from "./Handlers.ts"
import { withFaults } from "./LinkFaults.ts"
import { Refusal } from "./Refusal.ts"

/** A device on its link. */
export interface Over<D extends DeviceTriple> {
  readonly simulated: SimulatedDevice<D>
  readonly link: DeviceLink
}

/**
 * Opens the link, and returns the device on it. `route` takes messages that are
 * for sub-devices; it returns undefined for all others.
 */
export const over = Effect.fnUntraced(function*<D extends DeviceTriple, E, R>(
  device: D,
  openLink: OpenLink<E, R>,
  behaviour: Behaviour,
  route: (incoming: Incoming) => Effect.Effect<void> | undefined = () => undefined
): Effect.fn.Return<Over<D>, E, R | Scope.Scope> {
  checkTriple(device)
  const { faults } = behaviour
  const opened = yield* Latch.make()
  let link: DeviceLink
  const { simulated, take } = yield* make(device, () => link, opened.await, behaviour)
  link = yield* (faults === undefined ? openLink : withFaults(faults)(openLink))((incoming) => {
    const routed = route(incoming)
    if (routed !== undefined) return routed
    incoming.acknowledge()
    return take(incoming.message)
  })
  yield* opened.open
  return { simulated, link }
})

/** Messages from the cloud that a test may leave unread; of more, the oldest are lost. */
const receivedCapacity = 1024

/** Makes a device that has its link when `ready` ends, and what takes messages of the cloud to it. */
const make = Effect.fnUntraced(function*<D extends DeviceTriple>(
  device: D,
  link: () => DeviceLink,
  ready: Effect.Effect<void>,
  { faults, on = {} }: Behaviour
): Effect.fn.Return<
  { readonly simulated: SimulatedDevice<D>; readonly take: (message: DownlinkMessage) => Effect.Effect<void> },
  never,
  Scope.Scope
> {
  const scope = yield* Effect.scope
  const received = yield* Queue.sliding<DownlinkMessage>(receivedCapacity)
  // In Effect 4.0.6, who comes overtakes those who wait for a `Semaphore`.
  const inTurn = PartitionedSemaphore.makeUnsafe<D>({ permits: 1 }).withPermit(device)
  /** How far its clock is ahead, milliseconds. */
  let ahead = faults?.clock ?? 0

  /** The newest version of its shadow that it has heard of, or has given to a message of its own. */
  let version = 0
  const hear = (method: string, said: unknown) => {
    if (method !== "thing.shadow") return
    version = Math.max(version, (said as { readonly version?: number } | undefined)?.version ?? 0)
  }

  const send: SimulatedDevice["send"] = (method, params) =>
    Effect.suspend(() => link().send({ from: device, method, params: params as Json })).pipe(
      Effect.tap(({ data }) => Effect.sync(() => hear(method, data)))
    )

  const now = Effect.map(Clock.currentTimeMillis, (millis) => millis + ahead)

  /** Values with the time of a clock that may be wrong; otherwise they are as old as their message. */
  const withTime = (values: Values) =>
    faults?.clock === undefined ? Effect.succeed(values) : Effect.map(now, (time) =>
      Object.fromEntries(
        Object.entries(values).map(([id, value]) => [id, isTimed(value) ? value : { value, time }])
      ))

  const shadow = (message: Readonly<Record<string, Json>>, given?: number) =>
    Effect.flatMap(
      now,
      (time) => send("thing.shadow", { ...message, version: given ?? (version = Math.max(time, version + 1)) })
    )

  const simulated: SimulatedDevice<D> = {
    device,
    send,
    postProperties: (values) => Effect.flatMap(withTime(values), (timed) => send("thing.event.property.post", timed)),
    postEvent: (eventId, outputs = {}) => send(`thing.event.${eventId}.post`, outputs),
    postBatch: (batch) => send("thing.event.property.batch.post", batch),
    postBytes: (raw) => send("thing.model.up_raw", Buffer.from(raw).toString("hex")),
    answer: ({ id, method }, code, data = {}) => Effect.asVoid(send(`${method}_reply`, { id, code, data })),
    getShadow: send("thing.shadow", { method: "get" }),
    reportShadow: (reported, version) => shadow({ method: "update", state: { reported } }, version),
    deleteReported: (ids) => shadow({ method: "delete", state: { reported: nothing(ids) } }),
    clearDesired: (ids) => shadow({ method: "update", state: { desired: nothing(ids) } }),
    setTags: (tags) =>
      send("thing.deviceinfo.update", Object.entries(tags).map(([attrKey, attrValue]) => ({ attrKey, attrValue }))),
    getTags: (attrKeys = []) => send("thing.deviceinfo.get", { attrKeys }),
    deleteTags: (keys) => send("thing.deviceinfo.delete", keys.map((attrKey) => ({ attrKey }))),
    sendUserMessage: (topic, payload) => send(userMethod, userParams(topic, Buffer.from(payload))),
    inform: (version, module = "default") => send("thing.ota.inform", { version, module }),
    checkUpgrade: (module = "default") =>
      Effect.tap(
        send("thing.ota.firmware.get", { module }),
        ({ code, data }) =>
          code === 200 && "version" in (data as object)
            ? take({ id: "0", method: upgradeMethod, params: data })
            : Effect.void
      ),
    getConfiguration: Effect.gen(function*() {
      const { code, data, message } = yield* send("thing.config.get", { configScope: "product", getType: "file" })
      if (code !== 200) return yield* new Refusal({ code, reason: message })
      return yield* simulated.download((data as { readonly url: string }).url)
    }),
    download: (url) => Effect.suspend(() => link().download(url)),
    now,
    syncTime: Effect.gen(function*() {
      const sent = yield* now
      const { code, data, message } = yield* send("thing.ntp", { deviceSendTime: String(sent) })
      if (code !== 200) return yield* new Refusal({ code, reason: message })
      const { serverRecvTime, serverSendTime } = data as Readonly<Record<string, string>>
      const right = (Number(serverRecvTime) + Number(serverSendTime) + (yield* now) - sent) / 2
      if (!Number.isFinite(right)) {
        return yield* new Refusal({
          code,
          reason: "Expected serverRecvTime and serverSendTime as Unix milliseconds"
        })
      }
      const wrong = Math.round((yield* now) - right)
      ahead -= wrong
      return wrong
    }),
    received,
    cut: Effect.suspend(() => link().cut),
    closed: Effect.suspend(() => link().closed),
    disconnect: Effect.suspend(() => link().close)
  }

  const react = makeReaction(simulated, on)

  /** A message that could not be sent is the link's business; a defect of a handler is not. */
  const safely = (reaction: Effect.Effect<unknown, unknown>) =>
    Effect.catchCauseIf(
      Effect.ignore(reaction),
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => Effect.logError("A handler of a simulated device failed", cause)
    )

  const take = (message: DownlinkMessage) => {
    hear(message.method, message.params)
    const reaction = react(message)
    if (reaction === undefined) return Effect.asVoid(Queue.offer(received, message))
    const handled = inTurn(Effect.andThen(ready, safely(reaction)))
    return Effect.asVoid(Effect.forkIn(handled, scope, { startImmediately: true }))
  }

  return { simulated, take }
})

/** Whether a value carries its own time. */
const isTimed = (value: Json): boolean => typeof value === "object" && value !== null && "value" in value

/** What devices write for values that are to go: all, or those with these ids. */
const nothing = (ids: ReadonlyArray<string> | undefined): Json =>
  ids === undefined ? "null" : Object.fromEntries(ids.map((id) => [id, "null"]))
