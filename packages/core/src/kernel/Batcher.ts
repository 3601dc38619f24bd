/**
 * Carries out the items of many callers in batches. The next batch collects items
 * while the current one runs, so throughput grows with load and latency stays at
 * one or two batches. The queue is fair among the keys of items
 * (docs/decisions/0048-fair-shares-of-the-uplink.md).
 *
 * A small batch waits for more items while each turn of the event loop brings
 * some. Without that wait, a storage in memory, which commits at once, commits
 * almost every item alone (docs/decisions/0040-batches-gather.md).
 */
import { Deferred, Effect, Exit, Fiber, Hash, Scope } from "effect"
import { Entry, FairQueue } from "./FairQueue.ts"

export interface Batcher<in A, out B, out E> {
  /** Queues `item`, waits until its batch is carried out and returns the item's result. Default weight: 1. */
  readonly submit: (item: A, weight?: number) => Effect.Effect<B, E>
  /**
   * Queues `item` for callers that cannot wait, and calls `settle` when the batch
   * of the item is carried out. Returns undefined if there is room for more. If
   * the queue is full and the item's key holds more than its share, returns an
   * effect that ends when the item is in a batch: until then, the caller must
   * offer nothing more of this key. Default weight: 1.
   */
  readonly offer: (
    item: A,
    settle: (exit: Exit.Exit<B, E>) => void,
    weight?: number
  ) => Effect.Effect<void> | undefined
  /** Returns how many items wait for their batch. */
  readonly waiting: () => number
}

export interface Options<in A, out R, in out E> {
  /** Items with which the queue is full. */
  readonly capacity: number
  /** The weight of all items with which the queue is full. Default: none. */
  readonly capacityWeight?: number
  /** Items in one batch, at most. */
  readonly maxBatch: number
  /** The weight of the items in one batch, at most, unless a single item is heavier. Default: none. */
  readonly maxWeight?: number
  /**
   * The part of `maxBatch` and `maxWeight` that a batch holds while several groups
   * use the queue: each waits for the batch that is under way. Default: 1.
   */
  readonly sharedPart?: number
  /** Returns whose item it is. Items of one key keep their order; keys take turns. Default: all items have one key. */
  readonly keyOf?: (item: A) => string
  /** Returns the group of the item's key; groups take turns before keys. Default: all keys are in one group. */
  readonly groupOf?: (item: A) => string
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
/** The weight of the items that a key puts into a batch before it is another one's turn. */
const turnWeight = 32
/** Turns of the event loop that a smaller batch waits for more items, at most. */
const maxTurns = 16

/** How long the close of the scope waits for queued items. */
const drainTimeout = "2 seconds"

class Waiting<A, B, E> extends Entry {
  readonly item: A
  readonly settle: (exit: Exit.Exit<B, E>) => void
  isTaken = false
  isSettled = false
  /** Called when the item is in a batch. */
  onTaken: (() => void) | undefined = undefined

  constructor(item: A, settle: (exit: Exit.Exit<B, E>) => void, weight: number) {
    super(weight)
    this.item = item
    this.settle = settle
  }
}

const noKey = () => ""

/** Makes a batcher whose `commit` returns the results, in the order of the items. */
export const make = <A, B, E>(
  options: Options<A, ReadonlyArray<B>, E>
): Effect.Effect<Batcher<A, B, E>, never, Scope.Scope> =>
  makeConcluding({ ...options, conclude: (_, results) => Effect.succeed(results) })

/**
 * Makes a batcher with a step after each commit. Items of one key are committed
 * in the order of the calls. Only `commit` can run again for an item: a failure of `conclude`
 * reaches the callers of that batch and repeats nothing. When the scope closes,
 * the batcher carries out the queued items for at most 2 seconds and interrupts
 * the rest.
 */
export const makeConcluding = Effect.fnUntraced(function*<A, R, B, E>(
  {
    capacity,
    capacityWeight = Number.POSITIVE_INFINITY,
    commit,
    conclude,
    gathers = true,
    groupOf = noKey,
    isolates = () => false,
    keyOf = noKey,
    maxBatch,
    maxWeight = Number.POSITIVE_INFINITY,
    sharedPart = 1
  }:
    & Options<A, R, E>
    & Conclusion<A, R, B>
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const queue = new FairQueue<Waiting<A, B, E>>({ capacity, maxWeight: capacityWeight, turnWeight })
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** The scope closes: the queue takes nothing more. */
  let isEnding = false
  /** Wakes the worker, which waits for an item. */
  let wake: (() => void) | undefined

  /** Settles all entries that are not settled, even if a caller's `settle` throws. */
  const settle = (entries: ReadonlyArray<Waiting<A, B, E>>, exit: Exit.Exit<ReadonlyArray<B>, E>): void => {
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!
      // Of a batch that is interrupted, some may have been committed alone.
      if (entry.isSettled) continue
      entry.isSettled = true
      try {
        entry.settle(Exit.map(exit, (results) => results[i]!))
      } catch (defect) {
        runFork(Effect.logError("A caller throws on the result of its item", defect))
      }
    }
  }

  const carryOut = (entries: ReadonlyArray<Waiting<A, B, E>>): Effect.Effect<void> => {
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
      const { size } = queue
      return size >= enough || turns === 0
        ? Effect.void
        : Effect.flatMap(Effect.yieldNow, () => queue.size > size ? gather(turns - 1) : Effect.void)
    })

  const arrival = Effect.callback<void>((resume) => {
    if (queue.size > 0 || isEnding) return resume(Effect.void)
    wake = () => {
      wake = undefined
      resume(Effect.void)
    }
  })

  const take = (count: number, weight: number): ReadonlyArray<Waiting<A, B, E>> => {
    const entries = queue.take(count, weight)
    for (const entry of entries) {
      entry.isTaken = true
      entry.onTaken?.()
    }
    return entries
  }

  const runBatch: Effect.Effect<void, "ended"> = Effect.suspend(() => {
    const part = queue.isShared ? sharedPart : 1
    const entries = take(maxBatch * part, maxWeight * part)
    return entries.length === 0
      ? Effect.fail("ended")
      : Effect.onInterrupt(carryOut(entries), () => Effect.sync(() => settle(entries, Exit.interrupt())))
  })

  const worker = yield* arrival.pipe(
    Effect.andThen(gathers ? gather(maxTurns) : Effect.void),
    Effect.andThen(runBatch),
    Effect.forever,
    Effect.exit,
    Effect.forkDetach
  )

  const end = Effect.sync(() => {
    isEnding = true
    wake?.()
  })

  yield* Effect.addFinalizer(() =>
    end.pipe(
      Effect.andThen(Fiber.await(worker)),
      Effect.timeoutOption(drainTimeout),
      Effect.andThen(Fiber.interrupt(worker)),
      Effect.map(() => settle(take(queue.size, Number.POSITIVE_INFINITY), Exit.interrupt())),
      Effect.ignore
    )
  )

  /** Returns whether there is room for more. */
  const handOver = (entry: Waiting<A, B, E>): boolean => {
    if (isEnding) {
      settle([entry], Exit.interrupt())
      return true
    }
    const hasRoom = queue.push(entry, keyOf(entry.item), groupOf(entry.item))
    wake?.()
    return hasRoom
  }

  const untilTaken = (entry: Waiting<A, B, E>): Effect.Effect<void> =>
    Effect.callback((resume) => {
      if (entry.isTaken) return resume(Effect.void)
      entry.onTaken = () => resume(Effect.void)
    })

  return {
    submit: (item, weight = 1) =>
      Effect.suspend(() => {
        const settled = Deferred.makeUnsafe<B, E>()
        handOver(new Waiting(item, (exit) => Deferred.doneUnsafe(settled, exit), weight))
        return Deferred.await(settled)
      }),
    offer: (item, settle, weight = 1) => {
      const entry = new Waiting<A, B, E>(item, settle, weight)
      return handOver(entry) ? undefined : untilTaken(entry)
    },
    waiting: () => queue.size
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
  const { capacity, capacityWeight = Number.POSITIVE_INFINITY } = options
  const half = Scope.provide(
    makeConcluding({ ...options, capacity: capacity / 2, capacityWeight: capacityWeight / 2 }),
    scope
  )
  const even = yield* half
  const odd = yield* half
  const batcherOf = (item: A) => Hash.string(options.keyOf(item)) % 2 === 0 ? even : odd

  return {
    submit: (item, weight) => batcherOf(item).submit(item, weight),
    offer: (item, settle, weight) => batcherOf(item).offer(item, settle, weight),
    waiting: () => even.waiting() + odd.waiting()
  }
})
