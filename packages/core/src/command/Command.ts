/**
 * Commands: what the application asks of devices, from the call to its one end
 * (decisions, section 6).
 */
import { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { ProjectId } from "../project/Project.ts"
import type { Json } from "../kernel/Json.ts"

/**
 * `queued` until it was handed to the device's connection, `acked` when the
 * device has confirmed the packet, which ends a user message: nothing answers
 * it. The last four are final.
 */
export const CommandState = Schema.Literals([
  "queued",
  "sent",
  "acked",
  "succeeded",
  "failed",
  "expired",
  "cancelled"
])
export type CommandState = typeof CommandState.Type

/** A command moves forward only: to a state of a higher rank, and never out of a final one. */
export const rankOf = (state: CommandState): number => Math.min(CommandState.literals.indexOf(state), finalRank)

/** The rank of the final states. */
export const finalRank = 3

export interface Command {
  /** Positive, below 2^53; grows with each command. What the device echoes. */
  readonly messageId: number
  readonly projectId: ProjectId
  readonly deviceId: DeviceId
  /** The service that is called. */
  readonly serviceId: string | null
  /** The topic of a user message, below the device's user topics. Neither this nor a service: properties are set. */
  readonly userTopic: string | null
  readonly params: Readonly<Record<string, Json>>
  readonly state: CommandState
  /** What the device answered, or why it ended without an answer. */
  readonly code: number | null
  readonly message: string
  readonly data: Json
  /** Unix milliseconds. */
  readonly createdAt: number
  /** It is not delivered after this, Unix milliseconds. */
  readonly expiresAt: number
  /** The latest change of its state, Unix milliseconds. */
  readonly updatedAt: number
}

export type NewCommand =
  & Pick<Command, "projectId" | "deviceId" | "serviceId" | "userTopic" | "params" | "createdAt" | "expiresAt">
  & {
    /** `sent` when it is handed to the device's connection as soon as it is stored. */
    readonly state: "queued" | "sent"
    /** Names the call among those of the device: the same one again makes no second command. Absent: it has no name. */
    readonly origin?: string | undefined
  }

/** A step of a command. */
export interface CommandProgress {
  readonly deviceId: DeviceId
  readonly messageId: number
  readonly state: CommandState
  readonly code: number | null
  readonly message: string
  readonly data: Json
  /** Unix milliseconds. */
  readonly at: number
}

/** Commands of one device that have not ended. */
export const maxWaiting = 100

/** What the caller may decide about a call. */
export interface CallOptions {
  /** Seconds until the command expires; 0: only if the device is online now. Default 7 days. */
  readonly ttl?: number | undefined
  /** Names the call among those of the device: the same one again answers the command that is there. */
  readonly origin?: string | undefined
}

/** Seconds, 0 to 7 days. */
export const TimeToLive = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 604_800 }))

/** The method of messages on the topics that the application and the device agree on. */
export const userMethod = "user"

/** Whether the command sets properties: it neither calls a service nor carries a user message. */
export const setsProperties = ({ serviceId, userTopic }: Pick<Command, "serviceId" | "userTopic">): boolean =>
  serviceId === null && userTopic === null

export const methodOf = ({ serviceId, userTopic }: Pick<Command, "serviceId" | "userTopic">): string => {
  if (userTopic !== null) return userMethod
  return serviceId === null ? "thing.service.property.set" : `thing.service.${serviceId}`
}

/** What is carried on a user topic. */
export const UserMessage = Schema.Struct({
  /** Levels below `/{product_key}/{device_name}/user/`, without wildcards. At most 100 characters. */
  topic: Schema.String.check(
    Schema.isPattern(/^[^/+#\0\p{Cs}?][^+#\0\p{Cs}?]{0,99}$/u, {
      expected: "1 to 100 characters without a slash in front, + # ? and NUL"
    })
  ),
  payload: Schema.String,
  /** How `payload` stands for bytes. */
  encoding: Schema.Literals(["utf8", "base64"])
})
export interface UserMessage extends Schema.Schema.Type<typeof UserMessage> {}

/** The device has {@link maxWaiting} commands that have not ended. */
export class TooManyCommands extends Schema.TaggedError<TooManyCommands>()("TooManyCommands", {
  deviceId: Schema.String
}) {}

export class CommandNotFound extends Schema.TaggedError<CommandNotFound>()("CommandNotFound", {
  messageId: Schema.String
}) {}

/** Only a queued command can be cancelled. */
export class CommandNotQueued extends Schema.TaggedError<CommandNotQueued>()("CommandNotQueued", {
  messageId: Schema.String,
  state: CommandState
}) {}

/** The service can only be called synchronously, which the API does not offer. */
export class ServiceIsSync extends Schema.TaggedError<ServiceIsSync>()("ServiceIsSync", {
  serviceId: Schema.String
}) {}
