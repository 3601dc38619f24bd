/**
 * `IdempotencyStore` on LevelDB: requests and their responses in a directory of this
 * machine. A request that comes again after a restart gets its first response.
 */
import { type Claim, IdempotencyStore, type RequestKey, type StoredAnswer, StoreError } from "@device-cloud/core"
import { ClassicLevel } from "classic-level"
import { Effect, Layer, Semaphore } from "effect"

/** One process opens the directory at a time: the layer fails with `StoreError` while another one has it. */
export const layer = (options: { readonly directory: string }): Layer.Layer<IdempotencyStore, StoreError> =>
  Layer.effect(IdempotencyStore, make(options.directory))

interface StoredRequest {
  readonly fingerprint: string
  /** Unix milliseconds. */
  readonly claimedAt: number
  /** Null while the first caller works on the request. */
  readonly answer: StoredAnswer | null
}

/** LevelDB keeps keys in their order: all requests of a project stand together. */
const keyOf = ({ key, projectId }: RequestKey) => `${projectId}/${key}`

/** What comes after every key that begins with `projectId/`. */
const endOf = (projectId: string) => `${projectId}0`

/** A disk that is full or slow may be so no more at the next attempt; a database that is closed or broken stays so. */
const isRetryable = (cause: unknown) => (cause as { readonly code?: string }).code === "LEVEL_IO_ERROR"

const attempt = <A>(operation: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      new StoreError({ operation: `IdempotencyStore.${operation}`, retryable: isRetryable(cause), cause })
  })

const make = Effect.fnUntraced(function*(directory: string) {
  const level = yield* Effect.acquireRelease(
    Effect.suspend(() => {
      const opening = new ClassicLevel<string, StoredRequest>(directory, { valueEncoding: "json" })
      return Effect.as(attempt("open", () => opening.open()), opening)
    }),
    (opened) => Effect.promise(() => opened.close())
  )
  // LevelDB writes one key at a time. What reads first and then writes takes turns.
  const turn = Semaphore.makeUnsafe(1).withPermit

  return IdempotencyStore.of({
    claim: ({ answerExpiredBefore, at, claimExpiredBefore, fingerprint, ...request }) =>
      turn(attempt("claim", async (): Promise<Claim> => {
        const stored = await level.get(keyOf(request))
        if (stored !== undefined) {
          const { answer, claimedAt, fingerprint } = stored
          if (claimedAt >= (answer === null ? claimExpiredBefore : answerExpiredBefore)) {
            return answer === null
              ? { _tag: "InProgress", fingerprint }
              : { _tag: "Answered", fingerprint, answer }
          }
        }
        await level.put(keyOf(request), { fingerprint, claimedAt: at, answer: null })
        return { _tag: "Claimed" }
      })),

    answer: (request, answer) =>
      turn(attempt("answer", async () => {
        const stored = await level.get(keyOf(request))
        if (stored?.claimedAt === request.at) await level.put(keyOf(request), { ...stored, answer })
      })),

    release: (request) =>
      turn(attempt("release", async () => {
        const stored = await level.get(keyOf(request))
        if (stored?.claimedAt === request.at && stored.answer === null) await level.del(keyOf(request))
      })),

    count: (projectId, limit) =>
      attempt("count", async () => {
        const keys = await level.keys({ gt: `${projectId}/`, lt: endOf(projectId), limit }).all()
        return keys.length
      }),

    prune: ({ claimedBefore, limit }) =>
      turn(attempt("prune", async () => {
        const old: Array<string> = []
        for await (const [key, { claimedAt }] of level.iterator()) {
          if (claimedAt < claimedBefore) old.push(key)
          if (old.length === limit) break
        }
        await level.batch(old.map((key) => ({ type: "del", key })))
        return old.length
      }))
  })
})
