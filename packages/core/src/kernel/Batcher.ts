/**
 * Commits items of many callers in batches: while one batch is being
 * committed, the next one collects, and a small one goes on collecting while
 * each turn of the event loop brings more. Throughput grows with load, latency
 * stays at one or two commits.
 */
import { type Cause, Deferred, Effect, Exit, Fiber, Hash, Queue, Scope } from "effect"

export interface Batcher<in A, out B, out E> {
  /** Answers when the batch that holds `item` has been committed; waits while the queue is full. */
  readonly submit: (item: A) => Effect.Effect<B, E>
  /**
   * For callers that cannot wait: hands `item` over and calls `resume` when its
   * batch has been committed. False when the queue is full: nothing was taken,
   * use `submitWhenRoom`.
   */
  readonly submitUnsafe: (item: A, resume: (exit: Exit.Exit<B, E>) => void) => boolean
  /** Items that wait to be committed. */
  readonly waiting: () => number
  /** Hands `item` over as soon as there is room, in the order of the calls. */
  readonly submitWhenRoom: (item: A, resume: (exit: Exit.Exit<B, E>) => void) => Effect.Effect<void>
}

/** Items that are committed at once; fewer wait while each turn of the event loop brings more, at most so many turns. */
const enough = 64
const maxTurns = 16

/** How long the end of the scope waits for what was handed over. */
const drainTimeout = "5 seconds"

interface Entry<A, B, E> {
  readonly item: A
  readonly resume: (exit: Exit.Exit<B, E>) => void
}

export interface Options<in A, out B, in out E> {
  /** Items that may wait. */
  readonly capacity: number
  /** Items in one batch. */
  readonly maxBatch: number
  /** Answers in the order of `items`. */
  readonly commit: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E>
  readonly isolate: (error: E) => boolean
}

/**
 * Items are committed in the order in which they were handed over. A batch that
 * fails with an error that `isolate` recognizes is committed once more item by
 * item, so that one bad item fails alone. When the scope closes, what was
 * handed over is still committed, for at most `drainTimeout`.
 */
export const make = Effect.fnUntraced(function*<A, B, E>(
  options: Options<A, B, E>
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const queue = yield* Queue.bounded<Entry<A, B, E>, Cause.Done>(options.capacity)

  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  /** Answers all, also when one of them cannot be answered. */
  const settle = (entries: ReadonlyArray<Entry<A, B, E>>, exit: Exit.Exit<ReadonlyArray<B>, E>): void => {
    for (let i = 0; i < entries.length; i++) {
      try {
        entries[i]!.resume(Exit.map(exit, (answers) => answers[i]!))
      } catch (defect) {
        runFork(Effect.logError("A caller failed on the answer to its item", defect))
      }
    }
  }

  const commit = (entries: ReadonlyArray<Entry<A, B, E>>): Effect.Effect<void> =>
    options.commit(entries.map(({ item }) => item)).pipe(
      Effect.exit,
      Effect.flatMap((exit) =>
        entries.length > 1 && Exit.isFailure(exit) &&
          exit.cause.reasons.every((reason) =>
            reason._tag === "Die" || (reason._tag === "Fail" && options.isolate(reason.error))
          )
          ? Effect.forEach(entries, (entry) => commit([entry]), { discard: true })
          : Effect.sync(() => settle(entries, exit))
      )
    )

  /** Without it, a storage in memory, which commits at once, would commit nearly each item alone. */
  const gather = (turns: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const size = Queue.sizeUnsafe(queue)
      return size >= enough || turns === 0
        ? Effect.void
        : Effect.flatMap(Effect.yieldNow, () => Queue.sizeUnsafe(queue) > size ? gather(turns - 1) : Effect.void)
    })

  const worker = yield* Queue.peek(queue).pipe(
    Effect.andThen(gather(maxTurns)),
    Effect.andThen(Queue.takeBetween(queue, 1, options.maxBatch)),
    Effect.flatMap((entries) =>
      Effect.onInterrupt(commit(entries), () => Effect.sync(() => settle(entries, Exit.interrupt())))
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

  const submitWhenRoom: Batcher<A, B, E>["submitWhenRoom"] = (item, resume) =>
    Effect.map(Queue.offer(queue, { item, resume }), (taken) => {
      if (!taken) resume(Exit.interrupt())
    })

  const submitUnsafe: Batcher<A, B, E>["submitUnsafe"] = (item, resume) => Queue.offerUnsafe(queue, { item, resume })

  const submit: Batcher<A, B, E>["submit"] = (item) =>
    Effect.suspend(() => {
      const settled = Deferred.makeUnsafe<B, E>()
      const resume = (exit: Exit.Exit<B, E>) => Deferred.doneUnsafe(settled, exit)
      return submitUnsafe(item, resume)
        ? Deferred.await(settled)
        : Effect.andThen(submitWhenRoom(item, resume), Deferred.await(settled))
    })

  return { submit, submitUnsafe, submitWhenRoom, waiting: () => Queue.sizeUnsafe(queue) }
})

/**
 * Two group commits beside each other: while one waits for the storage, a batch
 * of the other is made ready. Items with the same key go the same way and keep
 * their order; each way has half of the room.
 */
export const makePartitioned = Effect.fnUntraced(function*<A, B, E>(
  options: Options<A, B, E> & { readonly keyOf: (item: A) => string }
): Effect.fn.Return<Batcher<A, B, E>, never, Scope.Scope> {
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const half = Scope.provide(make({ ...options, capacity: options.capacity / 2 }), scope)
  const even = yield* half
  const odd = yield* half
  const groupOf = (item: A) => Hash.string(options.keyOf(item)) % 2 === 0 ? even : odd

  return {
    submit: (item) => groupOf(item).submit(item),
    submitUnsafe: (item, resume) => groupOf(item).submitUnsafe(item, resume),
    submitWhenRoom: (item, resume) => groupOf(item).submitWhenRoom(item, resume),
    waiting: () => even.waiting() + odd.waiting()
  }
})
