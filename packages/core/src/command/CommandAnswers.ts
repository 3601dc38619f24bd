/**
 * Tells callers that wait for a command that it has ended, on whichever node the
 * device is connected (docs/decisions/0063-calls-that-wait.md).
 */
import { Array as Arr, Clock, Context, Effect, Latch, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import * as Outage from "../kernel/Outage.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type Command, type CommandProgress, finalRank, rankOf } from "./Command.ts"
import { CommandStore } from "./CommandStore.ts"

export class CommandAnswers extends Context.Service<CommandAnswers, {
  /** Waits until the command has ended, at most so many seconds, and returns it; none: it has not ended. */
  readonly untilEnded: (command: Command, seconds: number) => Effect.Effect<Option.Option<Command>, StoreError>
  /** Somebody on the node `nodeId` waits for the command, for so many seconds: that node is told when the command ends here. */
  readonly awaitedBy: (nodeId: string, messageId: number, seconds: number) => void
  /** Calls `ended` with each command that ends on this node, for as long as this layer lives. */
  readonly onEnd: (ended: (messageId: number) => void) => void
  /** Commands have taken these steps, which are stored. */
  readonly stepped: (steps: ReadonlyArray<CommandProgress>) => void
}>()("@device-cloud/core/command/CommandAnswers") {
  static readonly layer: Layer.Layer<CommandAnswers, never, CommandStore | NodeBus> = Layer.effect(
    CommandAnswers,
    Effect.suspend(() => make)
  )
}

/** A command has ended for which somebody on the node that hears this waits. */
const CommandEnded = NodeBus.channel("command/ended", Schema.Struct({ messageId: Schema.Int }))

/** Commands that are awaited on other nodes. Of more, the first are forgotten: their callers look at the store by themselves. */
const maxAwaited = 10_000

/** How often who waits looks at the store: notices may be lost, and the device may answer on a third node. */
const lookEvery = "2 seconds"

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const endedElsewhere = yield* CommandEnded
  const outage = Outage.make("Other nodes cannot be told of answers")
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const listeners: Array<(messageId: number) => void> = []
  /** Who waits on this node, by message id. */
  const waiting = new Map<number, Set<Latch.Latch>>()
  /** Which node waits for a command, and until when, Unix milliseconds. */
  const awaited = new Map<number, { readonly nodeId: string; readonly until: number }>()

  const wake = (messageId: number) => {
    for (const latch of waiting.get(messageId) ?? []) latch.openUnsafe()
  }

  yield* endedElsewhere.subscribe({
    heard: ({ messageId }) => Effect.sync(() => wake(messageId)),
    missed: Effect.sync(() => [...waiting.keys()].forEach(wake))
  })

  const tellOthers = (ended: ReadonlyArray<number>) => {
    const now = clock.currentTimeMillisUnsafe()
    const notices = ended.flatMap((messageId) => {
      const known = awaited.get(messageId)
      awaited.delete(messageId)
      return known !== undefined && known.until >= now ? [{ messageId, nodeId: known.nodeId }] : []
    })
    for (const [nodeId, some] of Object.entries(Arr.groupBy(notices, ({ nodeId }) => nodeId))) {
      runFork(
        outage.attempted(endedElsewhere.publish(some, nodeId))
      )
    }
  }

  const untilEnded = ({ deviceId, messageId }: Command, seconds: number) =>
    Effect.suspend(() => {
      const latch = Latch.makeUnsafe(false)
      const others = waiting.get(messageId) ?? new Set<Latch.Latch>()
      waiting.set(messageId, others.add(latch))
      const read = Effect.map(
        store.get(deviceId, messageId),
        Option.filter(({ state }) => rankOf(state) === finalRank)
      )
      const ended = Effect.gen(function*() {
        while (true) {
          latch.closeUnsafe()
          const command = yield* read
          if (Option.isSome(command)) return command
          yield* Effect.timeoutOption(latch.await, lookEvery)
        }
      })
      return ended.pipe(
        Effect.timeoutOrElse({ duration: seconds * 1000, orElse: () => read }),
        Effect.ensuring(Effect.sync(() => {
          others.delete(latch)
          if (others.size === 0) waiting.delete(messageId)
        }))
      )
    })

  return CommandAnswers.of({
    untilEnded,
    awaitedBy: (nodeId, messageId, seconds) => {
      if (awaited.size >= maxAwaited) awaited.delete(awaited.keys().next().value!)
      awaited.set(messageId, { nodeId, until: clock.currentTimeMillisUnsafe() + seconds * 1000 })
    },
    onEnd: (ended) => void listeners.push(ended),
    stepped: (steps) => {
      const ended: Array<number> = []
      for (const { messageId, state } of steps) if (rankOf(state) === finalRank) ended.push(messageId)
      for (const messageId of ended) {
        wake(messageId)
        for (const listener of listeners) listener(messageId)
      }
      if (awaited.size > 0) tellOthers(ended)
    }
  })
})
