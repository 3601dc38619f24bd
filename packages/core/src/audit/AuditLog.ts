/**
 * Keeps the audit log (docs/api/audit.md): changes that somebody makes, secrets
 * that somebody reads, requests that are refused.
 */
import { Clock, Context, Effect, Exit, Layer, type Stream } from "effect"
import * as Batcher from "../kernel/Batcher.ts"
import * as KeyedPages from "../kernel/KeyedPages.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { RateWindow } from "../kernel/RateWindow.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { AuditCursor, AuditEntry, AuditFilter, AuditSubject, NewAuditEntry } from "./AuditEntry.ts"
import { AuditStore } from "./AuditStore.ts"
import { AuditedAction, CurrentAction } from "./AuditedAction.ts"

export class AuditLog extends Context.Service<AuditLog, {
  /**
   * Carries out an action that changes something. The first write of `run` stores
   * the entry in its own transaction. If no write does, a success stores the
   * entry afterwards. A failure stores an entry with the code that `resultOf`
   * finds, also when an earlier write has stored one: the log then tells both.
   * `resultOf` returns 0 for a success, and undefined for an exit that is not
   * told of.
   */
  readonly carryOut: <A, E, R>(
    subject: AuditSubject,
    run: Effect.Effect<A, E, R>,
    resultOf: (exit: Exit.Exit<A, E>) => number | undefined
  ) => Effect.Effect<A, E | StoreError, R>
  /**
   * Stores an entry about secrets that the caller has read, and waits until it is
   * stored. Of reads of the same resource with the same access key, each node
   * stores one a minute: a back end that asks all the time does not fill the log.
   */
  readonly secretsRead: (subject: AuditSubject) => Effect.Effect<void, StoreError>
  /**
   * Stores an entry about a refusal, without waiting for it. Of one access key, at
   * most 60 a minute are stored on each node: a key that is refused all the time
   * cannot fill the log.
   */
  readonly refused: (subject: AuditSubject, result: number) => Effect.Effect<void>
  /** Returns entries of a project, the newest first, at most `limit`, after `after`. */
  readonly read: AuditStore["Service"]["read"]
  /** Streams all entries that `filter` selects, the newest first. */
  readonly export: (projectId: string, filter: AuditFilter) => Stream.Stream<AuditEntry, StoreError>
}>()("@device-cloud/core/audit/AuditLog") {
  static readonly layer: Layer.Layer<AuditLog, never, AuditStore> = Layer.effect(
    AuditLog,
    Effect.suspend(() => make)
  )
}

/** How long entries are kept, days. Default 365. */
export const AuditDays = Context.Reference<number>("@device-cloud/core/audit/AuditDays", {
  defaultValue: () => 365
})

/** Entries that may wait to be stored. */
const capacity = 4096
/** Entries in one transaction. */
const maxBatch = 1024
/** Entries that an export reads at once. */
const exportPage = 1000

/** Refusals of one access key that are stored in a minute. */
const refusals = { limit: 60, window: 60_000, capacity: 10_000 }

/** Reads of the same secrets by one access key that are stored in a minute. */
const reads = { limit: 1, window: 60_000, capacity: 100_000 }

const pruneEvery = "10 minutes"
/** Entries that are deleted in one transaction. */
const pruneLimit = 10_000

const lost = ({ action }: AuditSubject, reason: unknown) =>
  Effect.logWarning(`The audit log has lost an entry about ${action}`, reason)

const make = Effect.gen(function*() {
  const store = yield* AuditStore
  const days = yield* AuditDays
  const refusedOf = new RateWindow(refusals)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const entries = yield* Batcher.make<NewAuditEntry, void, StoreError>({
    capacity,
    maxBatch,
    commit: (batch) => Effect.as(store.append(batch), batch.map(() => undefined)),
    isolates: ({ retryable }) => !retryable
  })

  const record = (subject: AuditSubject) =>
    Effect.flatMap(Clock.currentTimeMillis, (at) => entries.submit({ at, result: 0, ...subject }))

  const readOf = new RateWindow(reads)

  const secretsRead = (subject: AuditSubject) =>
    Effect.flatMap(Clock.currentTimeMillis, (at) => {
      const { action, keyId, projectId, resource: { id, kind } } = subject
      // None of them holds a line feed.
      const read = `${projectId}\n${keyId}\n${action}\n${kind}\n${id}`
      if (readOf.fullUntil(read) > at) return Effect.void
      return Effect.tap(record(subject), Effect.sync(() => readOf.hit(read, at)))
    })

  const refused = Effect.fnUntraced(function*(subject: AuditSubject, result: number) {
    const at = yield* Clock.currentTimeMillis
    if (refusedOf.fullUntil(subject.keyId) > at) return
    refusedOf.hit(subject.keyId, at)
    const isFull = entries.offer({ at, result, ...subject }, (exit) => {
      if (Exit.isFailure(exit)) runFork(lost(subject, exit.cause))
    })
    if (isFull !== undefined) yield* lost(subject, "too many entries wait")
  })

  const carryOut = <A, E, R>(
    subject: AuditSubject,
    run: Effect.Effect<A, E, R>,
    resultOf: (exit: Exit.Exit<A, E>) => number | undefined
  ): Effect.Effect<A, E | StoreError, R> =>
    Effect.suspend(() => {
      const action = new AuditedAction(subject)
      return Effect.provideService(run, CurrentAction, action).pipe(
        // Also when the fiber is interrupted, for example because the action takes too long.
        Effect.onExit((exit) => {
          const result = resultOf(exit)
          return result === undefined || result === 0 ? Effect.void : refused(subject, result)
        }),
        Effect.tap((value) => action.isPending && resultOf(Exit.succeed(value)) === 0 ? record(subject) : Effect.void)
      )
    })

  const prune = Effect.gen(function*() {
    const before = (yield* Clock.currentTimeMillis) - days * 86_400_000
    while ((yield* store.prune({ before, limit: pruneLimit })) === pruneLimit) yield* Effect.yieldNow
  })
  yield* prune.pipe(
    Effect.catch((error) => Effect.logWarning("Old entries of the audit log could not be deleted", error)),
    Periodic.every(pruneEvery)
  )

  return AuditLog.of({
    carryOut,
    secretsRead,
    refused,
    read: store.read,
    export: (projectId, filter) =>
      KeyedPages.stream(exportPage, (entry: AuditCursor) => entry, (page) => store.read(projectId, filter, page))
  })
})
