/**
 * Carries out the items of many callers in batches. While one batch is carried
 * out the next one collects, so throughput grows with load and latency stays at
 * one or two batches.
 *
 * A small batch goes on collecting while each turn of the event loop brings
 * more items. Without that, a storage in memory, which commits at once, commits
 * nearly each item alone (docs/decisions/0040-batches-gather.md).
 */
import { type Cause, Deferred, Effect, Exit, Fiber, Hash, Queue, Scope } from "effect"

export interface Batcher<in A, out B, out E> {
  /** Returns the result of `item` when its batch is carried out. Waits while the queue is full. */
  readonly submit: (item: A) => Effect.Effect<B, E>
  /**
   * For callers that cannot wait: hands `item` over and calls `settle` when its
   * batch is carried out. Returns undefined when the item is taken. Returns an
   * effect when the queue is full: it hands the item over as soon as there is
   * room, in the order of the calls.
   */
  readonly offer: (item: A, settle: (exit: Exit.Exit<B, E>) => void) => Effect.Effect<void> | undefined
  /** Items that wait for their batch. */
  readonly waiting: () => number
}

export interface Options<in A, out R, in out E> {
  /** Items that may wait; more wait outside, in `submit`. */
  readonly capacity: number
  /** Items in one batch. */
  readonly maxBatch: number
  /** False: a batch starts with what is there. Default true. */
  readonly gathers?: boolean
  /** What must happen for all items together. A failure says that nothing has taken effect. */
  readonly commit: (items: ReadonlyArray<A>) => Effect.Effect<R, E>
  /** Whether an error may be about one item of several. Each item is then committed once more, alone. */
  readonly isolates?: (error: E) => boolean
}

/** What follows the commit of a batch. */
export interface Conclusion<in A, in R, out B> {
  /**
   * Runs once after each commit, and never makes one run again. Returns the
   * results in the order of `items`.
   */
  readonly conclude: (items: ReadonlyArray<A>, result: R) => Effect.Effect<ReadonlyArray<B>>
}

/** A batch of this size waits for no more items; a smaller one waits at most so many turns of the event loop. */
const enough = 64
const maxTurns = 16

/** How long the end of the scope waits for items that were handed over. */
const drainTimeout = "5 seconds"

interface Entry<A, B, E> {
  readonly item: A
  readonly settle: (exit: Exit.Exit<B, E>) => void
}

/** A batcher whose commit returns the results, in the order of the items. */
export const make = <A, B, E>(
  options: Options<A, ReadonlyArray<B>, E>
): Effect.Effect<Batcher<A, B, E>, never, Scope.Scope> =>
  makeConcluding({ ...options, conclude: (_, results) => Effect.succeed(results) })

/**
 * Items are committed in the order in which they are handed over. Only `commit`
 * is ever repeated: a failure of `conclude` reaches the callers of that batch
 * and repeats nothing. When the scope closes, items that were handed over are
 * still carried out, for at most `drainTimeout`; the others are interrupted.
 */
export const makeConcluding = Effect.fnUntraced(function*<A, R, B, E>(
  { capacity, commit, conclude, gathers = true, isolates = () => false, maxBatch }:
    & Options<A, R, E>
    & Conclusion<A, R, B>
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const queue = yield* Queue.bounded<Entry<A, B, E>, Cause.Done>(capacity)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  /** Settles all entries, also when a caller throws. */
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
 * Two batchers side by side: while one waits for the storage, the other makes
 * its batch ready. Items of one key take the same way and keep their order. Each
 * way has half of the capacity.
 */
export const makePartitioned = Effect.fnUntraced(function*<A, R, B, E>(
  options: Options<A, R, E> & Conclusion<A, R, B> & { readonly keyOf: (item: A) => string }
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const half = Scope.provide(makeConcluding({ ...options, capacity: options.capacity / 2 }), scope)
  const even = yield* half
  const odd = yield* half
  const wayOf = (item: A) => Hash.string(options.keyOf(item)) % 2 === 0 ? even : odd

  return {
    submit: (item) => wayOf(item).submit(item),
    offer: (item, settle) => wayOf(item).offer(item, settle),
    waiting: () => even.waiting() + odd.waiting()
  }
})
