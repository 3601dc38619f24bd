/**
 * The application's own `IdempotencyStore`: the latest requests of this process.
 * A request that comes again after a restart runs again.
 */
import { type Claim, IdempotencyStore, type RequestKey, type StoredAnswer } from "@device-cloud/core"
import { Effect, Layer } from "effect"

/** Keeps at most `capacity` requests; the oldest is forgotten first. */
export const layer = (options: { readonly capacity: number }): Layer.Layer<IdempotencyStore> =>
  Layer.sync(IdempotencyStore, () => make(options.capacity))

interface RecentRequest {
  readonly fingerprint: string
  /** Unix milliseconds. */
  readonly claimedAt: number
  /** Undefined while the first caller works on the request. */
  readonly answer: StoredAnswer | undefined
}

const nameOf = ({ key, projectId }: RequestKey): string => `${projectId}/${key}`

const make = (capacity: number): IdempotencyStore["Service"] => {
  const recent = new Map<string, RecentRequest>()

  return {
    claim: ({ answerExpiredBefore, at, claimExpiredBefore, fingerprint, ...request }) =>
      Effect.sync((): Claim => {
        const name = nameOf(request)
        const known = recent.get(name)
        if (known !== undefined) {
          const { answer, claimedAt, fingerprint } = known
          if (claimedAt >= (answer === undefined ? claimExpiredBefore : answerExpiredBefore)) {
            return answer === undefined
              ? { _tag: "InProgress", fingerprint }
              : { _tag: "Answered", fingerprint, answer }
          }
          recent.delete(name)
        }
        recent.set(name, { fingerprint, claimedAt: at, answer: undefined })
        if (recent.size > capacity) recent.delete(recent.keys().next().value!)
        return { _tag: "Claimed" }
      }),
    answer: (request, answer) =>
      Effect.sync(() => {
        const known = recent.get(nameOf(request))
        if (known?.claimedAt === request.at) recent.set(nameOf(request), { ...known, answer })
      }),
    release: (request) =>
      Effect.sync(() => {
        const known = recent.get(nameOf(request))
        if (known?.claimedAt === request.at && known.answer === undefined) recent.delete(nameOf(request))
      }),
    count: (projectId, limit) =>
      Effect.sync(() => {
        const names = [...recent.keys()].filter((name) => name.startsWith(`${projectId}/`))
        return Math.min(names.length, limit)
      }),
    prune: ({ claimedBefore, limit }) =>
      Effect.sync(() => {
        const old = [...recent].filter(([, { claimedAt }]) => claimedAt < claimedBefore).slice(0, limit)
        for (const [name] of old) recent.delete(name)
        return old.length
      })
  }
}
