/**
 * Counts of limits that all nodes share: at each look, once a second by default, each
 * node tells the others what it has counted, and they count it, too
 * (docs/decisions/0096-limits-of-a-cloud.md). So a limit holds for the cloud, but for
 * what comes between two looks.
 */
import { Clock, Context, Effect, Layer, Schema, type Scope } from "effect"
import * as Periodic from "../kernel/Periodic.ts"
import { maxNoticeBytes, NodeBus } from "./NodeBus.ts"

/** How much of a key was counted. */
export type Counted = readonly [key: string, amount: number]

/** A limit whose counts are shared. */
export interface SharedLimit {
  /** The same on all nodes. */
  readonly name: string
  /** Returns what was counted here since the last call and is worth telling. Called at each look. */
  readonly counted: () => ReadonlyArray<Counted>
  /** Counts what another node has counted. `now`: Unix milliseconds. */
  readonly charge: (key: string, amount: number, now: number) => void
}

export class SharedCounts extends Context.Service<SharedCounts, {
  /** Shares the counts of a limit until the scope closes. */
  readonly share: (limit: SharedLimit) => Effect.Effect<void, never, Scope.Scope>
}>()("@device-cloud/core/cluster/SharedCounts") {
  static readonly layer: Layer.Layer<SharedCounts, never, NodeBus> = Layer.effect(
    SharedCounts,
    Effect.suspend(() => make)
  )
}

/** Keys of one limit that are told at once, those that were counted most. */
export const maxTold = 200
/** Keys of one notice together; what else is in it is short. */
const maxBytes = maxNoticeBytes - 1024

const CountsTold = NodeBus.channel(
  "cluster/counts",
  Schema.Struct({
    node: Schema.String,
    name: Schema.String,
    counted: Schema.Array(Schema.Tuple([Schema.String, Schema.Finite]))
  })
)

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const channel = yield* CountsTold
  const { nodeId: node } = yield* NodeBus
  const limits = new Map<string, SharedLimit>()

  const tell = Effect.suspend(() =>
    channel.publish(
      [...limits.values()].flatMap(({ counted, name }) =>
        inNotices(most(counted())).map((counted) => ({ node, name, counted }))
      )
    )
  )
  yield* tell.pipe(
    // The others count on by themselves.
    Effect.catch((error) => Effect.logDebug("Other nodes could not be told what was counted", error)),
    Periodic.looking
  )
  yield* channel.subscribe({
    heard: ({ counted, name, node: other }) =>
      Effect.sync(() => {
        const limit = limits.get(name)
        if (other === node || limit === undefined) return
        const now = clock.currentTimeMillisUnsafe()
        for (const [key, amount] of counted) limit.charge(key, amount, now)
      }),
    missed: Effect.void
  })

  return SharedCounts.of({
    share: (limit) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => limits.set(limit.name, limit)),
        () => Effect.sync(() => limits.delete(limit.name))
      ))
  })
})

const most = (counted: ReadonlyArray<Counted>): ReadonlyArray<Counted> =>
  counted.length <= maxTold ? counted : counted.toSorted(([, a], [, b]) => b - a).slice(0, maxTold)

/** In parts that fit a notice. A key of characters beyond ASCII has at most three bytes for each. */
const inNotices = (counted: ReadonlyArray<Counted>): ReadonlyArray<ReadonlyArray<Counted>> => {
  const notices: Array<Array<Counted>> = []
  let left = 0
  for (const entry of counted) {
    const bytes = 3 * entry[0].length + 32
    if (bytes > left) {
      notices.push([])
      left = maxBytes
    }
    notices.at(-1)!.push(entry)
    left -= bytes
  }
  return notices
}
