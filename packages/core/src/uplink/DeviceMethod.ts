/**
 * Declarations of device methods. A feature declares the name of a method, what
 * its messages look like, and what the method does, in one of two kinds: a state
 * update (`update`, `updates`, `progress`) takes part in the transaction of its
 * batch, a request (`request`, `requests`) runs after the commit.
 */
import { Effect, Result, Schema } from "effect"
import type { CommandProgress } from "../command/Command.ts"
import type { DeviceIdentity } from "../device/Device.ts"
import { given } from "../kernel/GivenEffect.ts"
import { inputIssues } from "../kernel/InvalidInput.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { type DeviceReply, fieldError, systemError } from "./DeviceReply.ts"
import type { DeviceState } from "./DeviceState.ts"
import type { SubDeviceName } from "./SubDeviceDirectory.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

/**
 * What a message of the method looks like; adapters map it to topics and
 * payloads. `request` has params and wants a reply; those of `open` may also stand
 * in the message itself. `notice` has params and wants no reply, `answer` replies to
 * the cloud. `bytes` and `user` carry bytes.
 * `shadow`, `file`, `upgrade` and `time` have forms of their own.
 */
export type MessageForm =
  | "request"
  | "open"
  | "notice"
  | "answer"
  | "bytes"
  | "shadow"
  | "file"
  | "upgrade"
  | "user"
  | "time"

/**
 * Messages of one lane wait for each other; lanes do not. `reports`: what changes
 * a device, in order. `requests`: what a device asks for beside its reports.
 * `gateway`: requests about sub-devices, each of which may take many look-ups.
 * `downloads`: blocks of files, which are many and slow to read. Within a lane,
 * projects take turns, and in a project its devices.
 */
export type Lane = "reports" | "requests" | "gateway" | "downloads"

/** What every kind of method declares. */
export interface Declaration {
  /**
   * For example `thing.deviceinfo.update`. `*` stands for one level and `**` for
   * several, as in `thing.event.*.post`. An exact name wins over a pattern.
   */
  readonly name: string
  /** Default `request`. */
  readonly form?: MessageForm
  /** The action of the HTTP uplink that carries the method. Absent: the method cannot come over HTTP. */
  readonly action?: string
  /** Default: `reports` for what changes the state of devices or commands, `requests` for all else. */
  readonly lane?: Lane
  /**
   * Counts the values that a message carries, from its params, in little time. A
   * message with more than 1,000 is refused with code 460 before anything else
   * happens to it. Default: each message carries one.
   */
  readonly values?: (params: unknown) => number
}

/** Reads the params of a message: a schema, or a function that returns the request or the reply that refuses it. */
export type Decode<A> = Schema.Codec<A, unknown> | ((message: UplinkMessage) => Result.Result<A, DeviceReply>)

/**
 * Changes the state of one device and returns the reply. Pure: it runs again when
 * the store repeats a transaction.
 */
export type Update = (state: DeviceState) => DeviceReply

/** An update of one of several devices that a message is about. */
export interface DeviceUpdate {
  readonly device: DeviceIdentity
  readonly update: Update
}

/** Returns the sub-device of this name if it belongs to the device that speaks. */
export type FindSubDevice = (speaker: DeviceIdentity, name: SubDeviceName) => DeviceIdentity | undefined

/** A decoded request with the message that carries it. `message.device` is the device that it is about. */
export interface DeviceRequest<out A> {
  readonly request: A
  readonly message: UplinkMessage
}

/**
 * What `Uplink` does with a message: reply at once, change devices, store a step
 * of a command, or run a request.
 */
export type Plan =
  | { readonly _tag: "Reply"; readonly reply: DeviceReply }
  | { readonly _tag: "Update"; readonly update: Update }
  | { readonly _tag: "Updates"; readonly updates: ReadonlyArray<DeviceUpdate> }
  | { readonly _tag: "Progress"; readonly progress: CommandProgress }
  | { readonly _tag: "Request"; readonly request: unknown }

/** Handles requests and returns their replies in the same order. */
export type Handle<R> = (
  requests: ReadonlyArray<DeviceRequest<never>>
) => Effect.Effect<ReadonlyArray<DeviceReply>, StoreError, R>

/** A method as a feature declares it: made by `update`, `updates`, `progress`, `request` or `requests`. */
export interface DeviceMethod<out R = never> extends Declaration {
  /** Decodes a message and decides what `Uplink` does with it. */
  readonly plan: (message: UplinkMessage, find: FindSubDevice) => Plan
  /** Returns the sub-devices that a message names; `Uplink` looks them up before it calls `plan`. */
  readonly names?: (params: unknown) => ReadonlyArray<SubDeviceName>
  /** Runs the requests that `plan` returns. */
  readonly handle?: Handle<R>
  /** `handle` runs the requests of a batch one after the other, so that a batch of them must be small. */
  readonly isSlow?: boolean
}

const reply = (reply: DeviceReply): Plan => ({ _tag: "Reply", reply })

const decoder = <A>(decode: Decode<A>): (message: UplinkMessage) => Result.Result<A, DeviceReply> => {
  if (!Schema.isSchema(decode)) return decode
  const decodeParams = Schema.decodeUnknownResult(decode)
  return ({ params }) =>
    Result.mapError(decodeParams(params), (error) => {
      const [{ message, path }] = inputIssues(error)
      return fieldError(path.length === 0 ? "params" : path.join("."), message)
    })
}

/** A method whose reply needs only the message. */
export const answer = (
  declaration: Declaration & { readonly reply: (message: UplinkMessage) => DeviceReply }
): DeviceMethod => ({
  lane: "requests",
  ...declaration,
  plan: (message) => reply(declaration.reply(message))
})

/**
 * A state update, which takes part in the transaction of the batch. `update` gets
 * the state of the device, changes it and returns the reply, which leaves after
 * the commit.
 */
export const update = <A>(
  declaration: Declaration & {
    readonly decode: Decode<A>
    readonly update: (request: A, state: DeviceState, message: UplinkMessage) => DeviceReply
  }
): DeviceMethod => {
  const { update, ...rest } = declaration
  const decode = decoder(declaration.decode)
  return {
    ...rest,
    plan: (message) => {
      const decoded = decode(message)
      return Result.isFailure(decoded)
        ? reply(decoded.failure)
        : { _tag: "Update", update: (state) => update(decoded.success, state, message) }
    }
  }
}

/** State updates of several devices, for messages in which a gateway speaks for its sub-devices. */
export const updates = (
  declaration: Declaration & {
    /** Returns the sub-devices that a message names. */
    readonly names: (params: unknown) => ReadonlyArray<SubDeviceName>
    readonly updates: (
      message: UplinkMessage,
      find: FindSubDevice
    ) => Result.Result<ReadonlyArray<DeviceUpdate>, DeviceReply>
  }
): DeviceMethod => {
  const { updates, ...rest } = declaration
  return {
    ...rest,
    plan: (message, find) => {
      const planned = updates(message, find)
      return Result.isFailure(planned) ? reply(planned.failure) : { _tag: "Updates", updates: planned.success }
    }
  }
}

/** A step of a command, which takes part in the transaction of the batch and needs no state. */
export const progress = (
  declaration: Declaration & {
    readonly decode: (message: UplinkMessage) => Result.Result<CommandProgress, DeviceReply>
  }
): DeviceMethod => ({
  ...declaration,
  plan: (message) => {
    const decoded = declaration.decode(message)
    return Result.isFailure(decoded) ? reply(decoded.failure) : { _tag: "Progress", progress: decoded.success }
  }
})

/**
 * A request: `handle` runs after the batch is committed. It runs again while it
 * fails with a retryable `StoreError`, so it must be safe to repeat.
 */
export const request = <A, R = never>(
  declaration: Declaration & {
    readonly decode: Decode<A>
    readonly handle: (request: A, message: UplinkMessage) => Effect.Effect<DeviceReply, StoreError, R>
  }
): DeviceMethod<R> => {
  const { handle, ...rest } = declaration
  return {
    ...requests<A, R>({
      ...rest,
      handle: (all) =>
        Effect.forEach(all, ({ message, request }) => alone(given(declaration.name, () => handle(request, message))))
    }),
    isSlow: true
  }
}

/** Repeats one request until the store can be reached; a failure refuses only this request. */
const alone = <R>(handled: Effect.Effect<DeviceReply, StoreError, R>) =>
  untilStored(handled).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logError("A request of a device could not be carried out", cause), systemError)
    )
  )

/**
 * Requests that are handled together: `handle` gets neighbours in a batch in
 * their order and returns the replies in that order. Methods that share one
 * `handle` function share the call. If it fails, it runs again for each request
 * alone, so it must be safe to repeat.
 */
export const requests = <A, R = never>(
  declaration: Declaration & {
    readonly decode: Decode<A>
    readonly handle: (
      requests: ReadonlyArray<DeviceRequest<A>>
    ) => Effect.Effect<ReadonlyArray<DeviceReply>, StoreError, R>
  }
): DeviceMethod<R> => {
  const decode = decoder(declaration.decode)
  return {
    lane: "requests",
    ...declaration,
    handle: declaration.handle as unknown as Handle<R>,
    plan: (message) => {
      const decoded = decode(message)
      return Result.isFailure(decoded) ? reply(decoded.failure) : { _tag: "Request", request: decoded.success }
    }
  }
}
