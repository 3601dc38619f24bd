/**
 * Carries out the items of many callers in batches. The next batch collects items
 * while the current one runs, so throughput grows with load and latency stays at
 * one or two batches.
 *
 * A small batch waits for more items while each turn of the event loop brings
 * some. Without that wait, a storage in memory, which commits at once, commits
 * almost every item alone (docs/decisions/0040-batches-gather.md).
 */
import { type Cause, Deferred, Effect, Exit, Fiber, Hash, Queue, Scope } from "effect"

export interface Batcher<in A, out B, out E> {
  /** Waits until the batch of `item` is carried out and returns the item's result. Waits while the queue is full. */
  readonly submit: (item: A) => Effect.Effect<B, E>
  /**
   * Queues `item` for callers that cannot wait, and calls `settle` when the batch
   * of the item is carried out. Returns undefined if the item is queued. If the
   * queue is full, returns an effect that queues the item as soon as there is
   * room, in the order of the calls.
   */
  readonly offer: (item: A, settle: (exit: Exit.Exit<B, E>) => void) => Effect.Effect<void> | undefined
  /** Returns how many items wait for their batch. */
  readonly waiting: () => number
}

export interface Options<in A, out R, in out E> {
  /** Items that the queue holds. While the queue is full, `submit` waits. */
  readonly capacity: number
  /** Items in one batch, at most. */
  readonly maxBatch: number
  /** Whether a small batch waits for more items. Default true; false: a batch takes the items in the queue and starts. */
  readonly gathers?: boolean
  /** Carries out all items together. Fails only if nothing has taken effect. */
  readonly commit: (items: ReadonlyArray<A>) => Effect.Effect<R, E>
  /** Whether one item of several may have caused the error. If so, each item is committed again, alone. Default: none. */
  readonly isolates?: (error: E) => boolean
}

/** The step that follows the commit of a batch. */
export interface Conclusion<in A, in R, out B> {
  /** Runs once after each commit. Returns the results in the order of `items`. */
  readonly conclude: (items: ReadonlyArray<A>, result: R) => Effect.Effect<ReadonlyArray<B>>
}

/** A batch of this size starts at once. */
const enough = 64
/** Turns of the event loop that a smaller batch waits for more items, at most. */
const maxTurns = 16

/** How long the close of the scope waits for queued items. */
const drainTimeout = "5 seconds"

interface Entry<A, B, E> {
  readonly item: A
  readonly settle: (exit: Exit.Exit<B, E>) => void
}

/** Makes a batcher whose `commit` returns the results, in the order of the items. */
export const make = <A, B, E>(
  options: Options<A, ReadonlyArray<B>, E>
): Effect.Effect<Batcher<A, B, E>, never, Scope.Scope> =>
  makeConcluding({ ...options, conclude: (_, results) => Effect.succeed(results) })

/**
 * Makes a batcher with a step after each commit. Items are committed in the order
 * of the calls. Only `commit` can run again for an item: a failure of `conclude`
 * reaches the callers of that batch and repeats nothing. When the scope closes,
 * the batcher carries out the queued items for at most 5 seconds and interrupts
 * the rest.
 */
export const makeConcluding = Effect.fnUntraced(function*<A, R, B, E>(
  { capacity, commit, conclude, gathers = true, isolates = () => false, maxBatch }:
    & Options<A, R, E>
    & Conclusion<A, R, B>
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const queue = yield* Queue.bounded<Entry<A, B, E>, Cause.Done>(capacity)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  /** Settles all entries, even if a caller's `settle` throws. */
  const settle = (entries: ReadonlyArray<Entry<A, B, E>>, exit: Exit.Exit<ReadonlyArray<B>, E>): void => {
    for (let i = 0; i < entries.length; i++) {
      try {
        entries[i]!.settle(Exit.map(exit, (results) => results[i]!))
      } catch (defect) {
        runFork(Effect.logError("A caller throws on the result of its item", defect))
      }
    }
  }

  const carryOut = (entries: ReadonlyArray<Entry<A, B, E>>): Effect.Effect<void> => {
    const items = entries.map(({ item }) => item)
    return Effect.flatMap(Effect.exit(commit(items)), (committed) => {
      if (Exit.isSuccess(committed)) {
        return Effect.map(Effect.exit(conclude(items, committed.value)), (exit) => settle(entries, exit))
      }
      const isOfOne = entries.length > 1 &&
        committed.cause.reasons.every((reason) => reason._tag === "Fail" && isolates(reason.error))
      return isOfOne
        ? Effect.forEach(entries, (entry) => carryOut([entry]), { discard: true })
        : Effect.sync(() => settle(entries, Exit.failCause(committed.cause)))
    })
  }

  const gather = (turns: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const size = Queue.sizeUnsafe(queue)
      return size >= enough || turns === 0
        ? Effect.void
        : Effect.flatMap(Effect.yieldNow, () => Queue.sizeUnsafe(queue) > size ? gather(turns - 1) : Effect.void)
    })

  const worker = yield* Queue.peek(queue).pipe(
    Effect.andThen(gathers ? gather(maxTurns) : Effect.void),
    Effect.andThen(Queue.takeBetween(queue, 1, maxBatch)),
    Effect.flatMap((entries) =>
      Effect.onInterrupt(carryOut(entries), () => Effect.sync(() => settle(entries, Exit.interrupt())))
    ),
    Effect.forever,
    Effect.exit,
    Effect.forkDetach
  )

  yield* Effect.addFinalizer(() =>
    Queue.end(queue).pipe(
      Effect.andThen(Fiber.await(worker)),
      Effect.timeoutOption(drainTimeout),
      Effect.andThen(Fiber.interrupt(worker)),
      Effect.andThen(Queue.clear(queue)),
      Effect.map((entries) => settle(entries, Exit.interrupt())),
      Effect.ignore
    )
  )

  const handOver = (entry: Entry<A, B, E>): Effect.Effect<void> | undefined =>
    Queue.offerUnsafe(queue, entry)
      ? undefined
      : Effect.map(Queue.offer(queue, entry), (taken) => taken ? undefined : entry.settle(Exit.interrupt()))

  return {
    submit: (item) =>
      Effect.suspend(() => {
        const settled = Deferred.makeUnsafe<B, E>()
        const later = handOver({ item, settle: (exit) => Deferred.doneUnsafe(settled, exit) })
        return later === undefined ? Deferred.await(settled) : Effect.andThen(later, Deferred.await(settled))
      }),
    offer: (item, settle) => handOver({ item, settle }),
    waiting: () => Queue.sizeUnsafe(queue)
  }
})

/**
 * Makes two batchers that work side by side: while one waits for the storage, the
 * other prepares its batch. Items with the same key go to the same batcher and
 * keep their order. Each batcher has half of the capacity.
 */
export const makePartitioned = Effect.fnUntraced(function*<A, R, B, E>(
  options: Options<A, R, E> & Conclusion<A, R, B> & { readonly keyOf: (item: A) => string }
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const half = Scope.provide(makeConcluding({ ...options, capacity: options.capacity / 2 }), scope)
  const even = yield* half
  const odd = yield* half
  const batcherOf = (item: A) => Hash.string(options.keyOf(item)) % 2 === 0 ? even : odd

  return {
    submit: (item) => batcherOf(item).submit(item),
    offer: (item, settle) => batcherOf(item).offer(item, settle),
    waiting: () => even.waiting() + odd.waiting()
  }
})
