/**
 * What a simulated device does when the cloud speaks to it.
 */
import {
  type DownlinkMessage,
  type Json,
  rawMethod,
  upgradeMethod,
  userMethod,
  userReplyMethod
} from "@device-cloud/core"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { SimulatedDevice } from "../SimulatedDevice.ts"
import type { DeviceTriple } from "./DeviceLink.ts"
import { userParams } from "./DeviceTopics.ts"
import { type FirmwareImage, upgrade, type UpgradeOffer } from "./FirmwareUpgrade.ts"
import { Refusal } from "./Refusal.ts"

/** Values of properties, inputs or outputs, by their ids. */
export type Values = Readonly<Record<string, Json>>

type Device = SimulatedDevice<DeviceTriple>

/**
 * How a device reacts. Handlers of a device run one after the other, in the order
 * of the messages. A command that comes again is answered again and runs once.
 * What has no handler stays in `received` and gets no answer.
 */
export interface Handlers {
  /**
   * The cloud sets properties. The device answers with code 200, then reports the
   * returned values; none: those that were set. A `Refusal` is the answer.
   */
  readonly set?: (values: Values, device: Device) => Effect.Effect<Values | void, Refusal>
  /** The cloud calls a service: a handler for each, by service id. It returns the outputs; none: `{}`. */
  readonly services?: Readonly<
    Record<string, (inputs: Values, device: Device) => Effect.Effect<Values | void, Refusal>>
  >
  /**
   * Values are desired. The device reports the returned ones, none: those that are
   * desired, and clears them from the desired side. A `Refusal` leaves them there.
   */
  readonly desired?: (values: Values, device: Device) => Effect.Effect<Values | void, Refusal>
  /** A message on a user topic. If it is a call, the returned bytes are the reply; none: there is no reply. */
  readonly userMessage?: (
    message: { readonly topic: string; readonly payload: Uint8Array },
    device: Device
  ) => Effect.Effect<Uint8Array | string | void, Refusal>
  /**
   * There is firmware. The device has downloaded it, with reports of its progress,
   * and has compared it with its hash; the handler installs it. Then the device
   * reports the new version. A `Refusal` ends the upgrade as failed.
   */
  readonly upgrade?: (image: FirmwareImage, device: Device) => Effect.Effect<void, Refusal>
  /** A configuration was pushed. The device has downloaded it, and confirms it when the handler has ended. */
  readonly configuration?: (content: Uint8Array, device: Device) => Effect.Effect<void, Refusal>
  /** There is a task. The device says that it has begun and how it has ended, with the returned details. */
  readonly job?: (document: Json, device: Device) => Effect.Effect<Values | void, Refusal>
  /** Bytes for a raw device. The returned bytes are the answer; none: there is no answer. */
  readonly bytes?: (bytes: Uint8Array, device: Device) => Effect.Effect<Uint8Array | void, Refusal>
}

/** The answer to a command. */
interface Answer {
  readonly code: number
  readonly data: Json
  readonly message?: string
}

/** Commands whose answers a device remembers: the cloud keeps at most as many for a device. */
const rememberedAnswers = 100

/** Returns what the device does with a message; undefined: it has no handler for it. */
export const makeReaction = (device: Device, on: Handlers) => {
  const answers = new Map<string, Answer>()
  const services = new Map(Object.entries(on.services ?? {}))

  const answer = ({ id, method }: DownlinkMessage, { code, data, message = "" }: Answer) =>
    device.send(`${method}_reply`, { id, code, data, ...message === "" ? {} : { message } })

  /** Answers a command with what `handled` returns. `then` runs once, after an answer that says yes. */
  const command = <A extends Values | void>(
    message: DownlinkMessage,
    handled: () => Effect.Effect<A, Refusal>,
    data: (result: A) => Json,
    then: (result: A) => Effect.Effect<unknown, unknown> = () => Effect.void
  ) =>
    Effect.gen(function*() {
      const key = `${message.method} ${message.id}`
      const known = answers.get(key)
      if (known !== undefined) return yield* answer(message, known)
      const result = yield* Effect.result(handled())
      const given: Answer = result._tag === "Success"
        ? { code: 200, data: data(result.success) }
        : { code: result.failure.code, data: {}, message: result.failure.reason }
      if (answers.size >= rememberedAnswers) answers.delete(answers.keys().next().value!)
      answers.set(key, given)
      yield* answer(message, given)
      if (result._tag === "Success") yield* then(result.success)
    })

  const desire = Effect.fnUntraced(function*(handle: NonNullable<Handlers["desired"]>, params: Json) {
    const { state, version } = params as unknown as { readonly state: { desired?: Values }; readonly version: number }
    const desired = state.desired ?? {}
    if (Object.keys(desired).length === 0) return
    const reported = (yield* handle(desired, device)) ?? desired
    const cleared = Object.fromEntries(Object.keys(desired).map((id) => [id, "null"]))
    const side = Object.keys(reported).length === 0 ? {} : { reported }
    yield* device.send("thing.shadow", {
      method: "update",
      state: { ...side, desired: cleared },
      version: version + 1
    })
  })

  const configure = Effect.fnUntraced(
    function*(handle: NonNullable<Handlers["configuration"]>, message: DownlinkMessage) {
      const { sign, url } = message.params as { readonly sign: string; readonly url: string }
      const content = yield* device.download(url)
      const isRight = createHash("sha256").update(content).digest("hex") === sign
      yield* command(
        message,
        () =>
          isRight ? handle(content, device) : Effect.fail(new Refusal({ code: 100_000, reason: "The hash is wrong" })),
        () => ({})
      )
    }
  )

  const begun = new Set<string>()
  const work = Effect.fnUntraced(function*(handle: NonNullable<Handlers["job"]>, params: Json) {
    const { jobDocument, status, taskId } = (params as { readonly task: Readonly<Record<string, Json>> }).task
    if ((status !== "SENT" && status !== "QUEUED") || begun.has(String(taskId))) return
    begun.add(String(taskId))
    yield* device.send("thing.job.update", { taskId: taskId!, status: "IN_PROGRESS" })
    const result = yield* Effect.result(handle(jobDocument ?? null, device))
    yield* device.send(
      "thing.job.update",
      result._tag === "Success"
        ? { taskId: taskId!, status: "SUCCEEDED", progress: 100, statusDetails: result.success ?? {} }
        : { taskId: taskId!, status: "FAILED", statusDetails: { reason: result.failure.reason } }
    )
  })

  const converse = Effect.fnUntraced(
    function*(handle: NonNullable<Handlers["userMessage"]>, { id, params, synchronous }: DownlinkMessage) {
      const { encoding, payload, topic } = params as { readonly [Key in "encoding" | "payload" | "topic"]: string }
      const bytes = Buffer.from(payload, encoding === "base64" ? "base64" : "utf8")
      const reply = yield* handle({ topic, payload: bytes }, device)
      if (synchronous !== true || reply === undefined) return
      yield* device.send(userReplyMethod, { id, ...userParams(topic, Buffer.from(reply)) })
    }
  )

  const exchange = Effect.fnUntraced(function*(handle: NonNullable<Handlers["bytes"]>, bytes: Uint8Array) {
    const reply = yield* handle(bytes, device)
    if (reply !== undefined) yield* device.send(`${rawMethod}_reply`, Buffer.from(reply).toString("hex"))
  })

  return (message: DownlinkMessage): Effect.Effect<unknown, unknown> | undefined => {
    const { bytes, method, params } = message
    if (bytes !== undefined) return on.bytes && exchange(on.bytes, bytes)
    switch (method) {
      case "thing.service.property.set": {
        const { set } = on
        const values = params as Values
        return set && command(
          message,
          () => set(values, device),
          () => ({}),
          (reported) => device.postProperties(reported ?? values)
        )
      }
      case "thing.shadow":
        return on.desired && desire(on.desired, params)
      case upgradeMethod:
        return on.upgrade && upgrade(device, params as unknown as UpgradeOffer, on.upgrade)
      case "thing.config.push":
        return on.configuration && configure(on.configuration, message)
      case "thing.job.notify":
        return on.job && work(on.job, params)
      case userMethod:
        return on.userMessage && converse(on.userMessage, message)
    }
    const service = method.startsWith("thing.service.")
      ? services.get(method.slice("thing.service.".length))
      : undefined
    return service && command(message, () => service(params as Values, device), (outputs) => outputs ?? {})
  }
}
