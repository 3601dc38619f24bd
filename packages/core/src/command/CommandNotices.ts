/**
 * Tells the nodes that own devices of commands for them. A notice carries the command
 * if it fits, so that the owner delivers it without a look at the store.
 */
import { Array as Arr, Effect, Queue, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceId } from "../device/Device.ts"
import type { Json } from "../kernel/Json.ts"
import * as Outage from "../kernel/Outage.ts"
import { ProjectId } from "../project/Project.ts"
import { type Command, CommandState } from "./Command.ts"
import type { Enqueued } from "./CommandStore.ts"

/** What a node tells the owner of a device. */
export const CommandNotice = Schema.Struct({
  deviceId: DeviceId,
  messageId: Schema.Int,
  /** As in `Enqueued`. */
  previous: Schema.optional(Schema.Int),
  /** The epoch of the session that owns the device. */
  epoch: Schema.Int,
  /** Absent: it is too large, and has to be read from the store. */
  command: Schema.optional(Schema.Struct({
    projectId: ProjectId,
    serviceId: Schema.NullOr(Schema.String),
    userTopic: Schema.NullOr(Schema.String),
    params: Schema.Record(Schema.String, Schema.Json),
    synchronous: Schema.Boolean,
    state: CommandState,
    createdAt: Schema.Finite,
    expiresAt: Schema.Finite
  })),
  /** Somebody on this node waits, for so many seconds, for the end of the command. */
  awaited: Schema.optional(Schema.Struct({ nodeId: Schema.String, seconds: Schema.Finite }))
})
export type CommandNotice = typeof CommandNotice.Type

const CommandStored = NodeBus.channel("command/stored", CommandNotice)

/** The JSON of params of this length fits a notice, whatever its characters are. */
const maxParamsLength = 2048

/** Notices that wait to be published. The oldest of more are lost, as any notice may be. */
const capacity = 16_384

/** The notice of a command for the owner of its device. */
export const noticeOf = (
  { command, previous }: Enqueued,
  epoch: number,
  awaited: CommandNotice["awaited"]
): CommandNotice => {
  const { createdAt, deviceId, expiresAt, messageId, params, projectId, serviceId, state, synchronous, userTopic } =
    command
  const isSmall = (userTopic?.length ?? 0) + (serviceId?.length ?? 0) + JSON.stringify(params).length <= maxParamsLength
  return {
    deviceId,
    messageId,
    epoch,
    ...previous === undefined ? {} : { previous },
    ...isSmall
      ? { command: { projectId, serviceId, userTopic, params, synchronous, state, createdAt, expiresAt } }
      : {},
    ...awaited === undefined ? {} : { awaited }
  }
}

/** The command that the notice carries. */
export const commandOf = ({ command, deviceId, messageId }: CommandNotice): Command | undefined =>
  command === undefined ? undefined : {
    messageId,
    deviceId,
    deliveries: 0,
    code: null,
    message: "",
    data: {} as Json,
    updatedAt: command.createdAt,
    ...command
  }

/** Publishes notices by address and calls `heard` with those of other nodes, until the scope closes. */
export const make = Effect.fnUntraced(function*(heard: (notice: CommandNotice) => Effect.Effect<void>) {
  const channel = yield* CommandStored
  const outage = Outage.make("Other nodes cannot be told of commands")
  const outbox = yield* Queue.sliding<readonly [nodeId: string, notice: CommandNotice]>(capacity)
  // A sweep says what the latest command is of each device that this node owns.
  yield* channel.subscribe({ heard, missed: Effect.void })
  yield* Queue.takeAll(outbox).pipe(
    Effect.flatMap((waiting) =>
      Effect.forEach(
        Object.entries(Arr.groupBy(waiting, ([nodeId]) => nodeId)),
        ([nodeId, some]) => channel.publish(some.map(([, notice]) => notice), nodeId),
        { concurrency: "unbounded", discard: true }
      )
    ),
    outage.attempted,
    Effect.forever,
    Effect.forkScoped
  )
  return {
    /** Tells the node in its turn. */
    tell: (nodeId: string, notice: CommandNotice) => void Queue.offerUnsafe(outbox, [nodeId, notice] as const)
  }
})
