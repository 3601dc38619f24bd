/**
 * Commands: what an application asks of devices, from the call to its one end
 * (docs/protocol/commands.md).
 */
import { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { Json } from "../kernel/Json.ts"

/**
 * A command is `queued` until it is handed to the device's connection (`sent`),
 * and `acked` when the device has confirmed the packet. A user message that nobody
 * waits for gets no reply: the confirmation makes it `succeeded`. The last four
 * states are final.
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

/** The rank of a state. A command moves only to a state of a higher rank, and never out of a final one. */
export const rankOf = (state: CommandState): number => Math.min(CommandState.literals.indexOf(state), finalRank)

/** The rank of the final states. */
export const finalRank = 3

export interface Command {
  /** Positive, below 2^53; grows with each command. The device echoes it in its reply. */
  readonly messageId: number
  readonly projectId: ProjectId
  readonly deviceId: DeviceId
  /** The service that the command calls; null: none. */
  readonly serviceId: string | null
  /**
   * The topic of a user message, below the device's user topics; null: none;
   * `rawTopic`: the command is bytes, as hex text in `params.data`.
   * Without topic and service, the command sets properties.
   */
  readonly userTopic: string | null
  readonly params: Readonly<Record<string, Json>>
  /** Whether the caller waits for a reply on a topic that is for such calls. */
  readonly synchronous: boolean
  readonly state: CommandState
  /** How often the command was handed to the device. */
  readonly deliveries: number
  /** The code of the device's reply; null: no reply has come. */
  readonly code: number | null
  /** The message of the device's reply, or why the command ended without one. */
  readonly message: string
  /** The data of the device's reply. */
  readonly data: Json
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The command is not delivered after this time, Unix milliseconds. */
  readonly expiresAt: number
  /** The time of the latest change of the state, Unix milliseconds. */
  readonly updatedAt: number
}

/** A command as it is handed to the store. */
export type NewCommand =
  & Pick<Command, "projectId" | "deviceId" | "serviceId" | "userTopic" | "params" | "createdAt" | "expiresAt">
  & {
    /** Default false. */
    readonly synchronous?: boolean | undefined
    /** Names the call among those of the device, so that a repeated call makes no second command. */
    readonly origin?: string | undefined
  }

/** A step of a command to `state`. */
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

/** How often a command goes to a device that confirms it and does not answer. */
export const maxDeliveries = 3

/** Commands of one device that may be unfinished at the same time. */
export const maxWaiting = 100

/**
 * How long a command that the device has confirmed keeps its place while no other
 * needs it, milliseconds: then the device counts as one that does not answer.
 */
export const answerTime = 60_000

/** What a caller may decide about a call. */
export interface CallOptions {
  /**
   * Seconds until the command expires, 0 to 604,800; default 604,800 (7 days). 0:
   * only if the device is connected now.
   */
  readonly ttl?: number | undefined
  /**
   * Names the call among those of the device. A call whose origin the device
   * already has returns that command unchanged.
   */
  readonly origin?: string | undefined
}

/** Seconds until a command expires whose caller says nothing else: 7 days. */
export const defaultTtlSeconds = 7 * 24 * 3600

/** Seconds, 0 to 7 days. */
export const TimeToLive = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 604_800 }))

/** The method of messages on user topics, which the application and the device agree on. */
export const userMethod = "user"

/** The method with which a device replies to a user message for which somebody waits. */
export const userReplyMethod = "user_reply"

/** The method of bytes that an application sends as they are. */
export const rawMethod = "thing.model.down_raw"

/** The `userTopic` of a command that is bytes. No user topic is empty. */
export const rawTopic = ""

/** Bytes for a device, as hex text. */
export const RawBytes = Schema.String.check(
  Schema.isPattern(/^(?:[0-9A-Fa-f]{2}){1,65536}$/u, { expected: "1 to 65,536 bytes as hex text" })
)

/** Returns whether the command sets properties: it neither calls a service nor carries a user message. */
export const setsProperties = ({ serviceId, userTopic }: Pick<Command, "serviceId" | "userTopic">): boolean =>
  serviceId === null && userTopic === null

/** Returns whether the device replies to the command. The confirmation of the packet ends those without a reply. */
export const hasReply = ({ synchronous, userTopic }: Pick<Command, "synchronous" | "userTopic">): boolean =>
  synchronous || userTopic === null

/** Returns the method of the message that carries the command. */
export const methodOf = ({ serviceId, userTopic }: Pick<Command, "serviceId" | "userTopic">): string => {
  if (userTopic !== null) return userTopic === rawTopic ? rawMethod : userMethod
  return serviceId === null ? "thing.service.property.set" : `thing.service.${serviceId}`
}

/** The device has {@link maxWaiting} commands that have not ended. */
export class TooManyCommands extends DomainError<TooManyCommands>()(
  "TooManyCommands",
  {
    deviceId: Schema.String
  },
  ({ deviceId }) => `Device ${deviceId} has ${maxWaiting} messages that wait; cancel some or let them expire`
) {}

/** The device has no command with this id. */
export class CommandNotFound extends DomainError<CommandNotFound>()(
  "CommandNotFound",
  {
    messageId: Schema.String
  },
  ({ messageId }) => `There is no message ${messageId} for this device`
) {}

/** Only a queued command can be cancelled. */
export class CommandNotQueued extends DomainError<CommandNotQueued>()(
  "CommandNotQueued",
  {
    messageId: Schema.String,
    state: CommandState
  },
  ({ messageId, state }) => `Message ${messageId} is ${state}; only a queued one can be cancelled`
) {}

/** The device is not connected, so that nobody can wait for its reply. */
export class DeviceNotConnected extends DomainError<DeviceNotConnected>()(
  "DeviceNotConnected",
  {
    deviceId: Schema.String
  },
  ({ deviceId }) => `Device ${deviceId} is not connected; call with wait 0 to let the call wait`
) {}

/** The device has not replied in time. The command goes on. */
export class NoReply extends DomainError<NoReply>()(
  "NoReply",
  {
    messageId: Schema.String
  },
  ({ messageId }) => `The device has not replied in time; message ${messageId} goes on`
) {}

/** Seconds, 0 to 30. */
export const WaitTime = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 30 }))
