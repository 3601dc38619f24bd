/**
 * Tells callers that wait for a command that it has ended, on whichever node the
 * device is connected (docs/decisions/0063-calls-that-wait.md).
 */
import { Clock, Context, Effect, Latch, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type Command, type CommandProgress, finalRank, rankOf } from "./Command.ts"
import { CommandStore } from "./CommandStore.ts"

export class CommandAnswers extends Context.Service<CommandAnswers, {
  /** Asks other nodes to tell this one, for so many seconds, which commands of the device end. Call it before the call is stored. */
  readonly announce: (deviceId: DeviceId, seconds: number) => Effect.Effect<void>
  /** Waits until the command has ended, at most so many seconds, and returns it; none: it has not ended. */
  readonly untilEnded: (command: Command, seconds: number) => Effect.Effect<Option.Option<Command>, StoreError>
  /** Commands have taken these steps, which are stored. */
  readonly stepped: (steps: ReadonlyArray<CommandProgress>) => void
}>()("@device-cloud/core/command/CommandAnswers") {
  static readonly layer: Layer.Layer<CommandAnswers, never, CommandStore | NodeBus> = Layer.effect(
    CommandAnswers,
    Effect.suspend(() => make)
  )
}

/** Somebody on another node waits for commands of the device. */
const CommandAwaited = NodeBus.channel("command/awaited", Schema.Struct({ deviceId: DeviceId, seconds: Schema.Finite }))

/** A command of a device has ended for which somebody on another node waits. */
const CommandEnded = NodeBus.channel("command/ended", Schema.Struct({ messageId: Schema.Int }))

/** Devices whose commands are awaited on other nodes. Of more, the first are forgotten: their callers look at the end of their wait. */
const maxAwaited = 10_000

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const awaitedElsewhere = yield* CommandAwaited
  const endedElsewhere = yield* CommandEnded
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Who waits on this node, by message id. */
  const waiting = new Map<number, Set<Latch.Latch>>()
  /** Until when other nodes wait for commands of the device, Unix milliseconds. */
  const awaited = new Map<DeviceId, number>()

  const wake = (messageId: number) => {
    for (const latch of waiting.get(messageId) ?? []) latch.openUnsafe()
  }

  yield* awaitedElsewhere.subscribe({
    heard: ({ deviceId, seconds }) =>
      Effect.sync(() => {
        const until = Math.max(clock.currentTimeMillisUnsafe() + seconds * 1000, awaited.get(deviceId) ?? 0)
        awaited.delete(deviceId)
        if (awaited.size >= maxAwaited) awaited.delete(awaited.keys().next().value!)
        awaited.set(deviceId, until)
      }),
    missed: Effect.void
  })
  yield* endedElsewhere.subscribe({
    heard: ({ messageId }) => Effect.sync(() => wake(messageId)),
    missed: Effect.sync(() => [...waiting.keys()].forEach(wake))
  })

  const tellOthers = (ended: ReadonlyArray<CommandProgress>) => {
    const now = clock.currentTimeMillisUnsafe()
    const notices = ended.filter(({ deviceId }) => (awaited.get(deviceId) ?? 0) >= now)
      .map(({ messageId }) => ({ messageId }))
    if (notices.length === 0) return
    runFork(
      endedElsewhere.publish(notices).pipe(
        Effect.catch((error) => Effect.logWarning("Other nodes could not be told of answers", error))
      )
    )
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
          yield* latch.await
        }
      })
      return ended.pipe(
        // A notice may have been lost.
        Effect.timeoutOrElse({ duration: seconds * 1000, orElse: () => read }),
        Effect.ensuring(Effect.sync(() => {
          others.delete(latch)
          if (others.size === 0) waiting.delete(messageId)
        }))
      )
    })

  return CommandAnswers.of({
    announce: (deviceId, seconds) =>
      awaitedElsewhere.publish([{ deviceId, seconds }]).pipe(
        Effect.catch((error) => Effect.logWarning("Other nodes could not be told of a call", error))
      ),
    untilEnded,
    stepped: (steps) => {
      if (waiting.size === 0 && awaited.size === 0) return
      const ended = steps.filter(({ state }) => rankOf(state) === finalRank)
      for (const { messageId } of ended) wake(messageId)
      if (awaited.size > 0) tellOthers(ended)
    }
  })
})
