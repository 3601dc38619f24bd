/**
 * Replies to requests with an idempotency key, in memory.
 */
import { type ClaimedRequest, IdempotencyStore, type RequestKey, type StoredAnswer } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { type StoredRequest, Tables } from "./Tables.ts"

/** Stands alone: it reads no other data of its tables. */
export const layer: Layer.Layer<IdempotencyStore, never, Tables> = Layer.effect(
  IdempotencyStore,
  Effect.map(Tables, (tables) => make(tables))
)

const keyOf = ({ key, projectId }: RequestKey): string => `${projectId}/${key}`

/** Notes the answer to a claimed request, unless the claim is another caller's. */
export const answer = (
  requests: Tables["Service"]["requests"],
  request: ClaimedRequest,
  answer: StoredAnswer
): void => {
  const known = requests.get(keyOf(request))
  if (known?.claimedAt === request.at) requests.set(keyOf(request), { ...known, answer })
}

const make = ({ requests }: Tables["Service"]) =>
  IdempotencyStore.of({
    claim: ({ answerExpiredBefore, at, claimExpiredBefore, fingerprint, ...request }) =>
      Effect.sync(() => {
        const known = requests.get(keyOf(request))
        const isOld = (entry: StoredRequest) =>
          entry.claimedAt < (entry.answer === undefined ? claimExpiredBefore : answerExpiredBefore)
        if (known === undefined || isOld(known)) {
          requests.delete(keyOf(request))
          requests.set(keyOf(request), { fingerprint, claimedAt: at, answer: undefined })
          return { _tag: "Claimed" }
        }
        return known.answer === undefined
          ? { _tag: "InProgress", fingerprint: known.fingerprint }
          : { _tag: "Answered", fingerprint: known.fingerprint, answer: known.answer }
      }),
    answer: (request, given) => Effect.sync(() => answer(requests, request, given)),
    release: (request) =>
      Effect.sync(() => {
        const known = requests.get(keyOf(request))
        if (known?.claimedAt === request.at && known.answer === undefined) requests.delete(keyOf(request))
      }),
    count: (projectId, limit) =>
      Effect.sync(() => {
        let count = 0
        for (const key of requests.keys()) {
          if (key.startsWith(`${projectId}/`) && ++count === limit) break
        }
        return count
      }),
    prune: ({ claimedBefore, limit }) =>
      Effect.sync(() => {
        let count = 0
        for (const [key, { claimedAt }] of requests) {
          if (count === limit) return count
          if (claimedAt >= claimedBefore) continue
          requests.delete(key)
          count++
        }
        return count
      })
  })
