/**
 * Limits on how often a project, an address or a device may ask (decisions,
 * section 15). Off unless they are given.
 */
import { Context, Duration, Effect, Layer, Schema } from "effect"
import { RateLimiter } from "effect/persistence"
import { Code, type Failure, failure } from "../Failure.ts"

/** For example `20:1,600:60`: 20 in a second and 600 in a minute. */
export interface RateLimitOptions {
  readonly project?: string | undefined
  readonly address?: string | undefined
  /** Of the HTTP uplink. */
  readonly device?: string | undefined
}

/** A limit is not of the form `count:seconds`, several separated by commas. */
export class InvalidRateLimit extends Schema.TaggedError<InvalidRateLimit>()("InvalidRateLimit", {
  message: Schema.String
}) {}

interface Limit {
  readonly limit: number
  readonly seconds: number
}

const parse = Effect.fnUntraced(function*(name: string, text: string | undefined) {
  if (text === undefined) return []
  const limits: Array<Limit> = []
  for (const part of text.split(",")) {
    const [, limit = 0, seconds = 0] = (/^\s*(\d{1,9}):(\d{1,6})\s*$/.exec(part) ?? []).map(Number)
    if (limit === 0 || seconds === 0) {
      return yield* new InvalidRateLimit({ message: `${name}: expected count:seconds like 20:1,600:60, not ${part}` })
    }
    limits.push({ limit, seconds })
  }
  return limits
})

const make = Effect.fnUntraced(function*(options: RateLimitOptions) {
  const limiter = yield* RateLimiter.RateLimiter
  const limits = yield* Effect.all({
    project: parse("project", options.project),
    address: parse("address", options.address),
    device: parse("device", options.device)
  })

  const check = (kind: keyof RateLimitOptions, key: string): Effect.Effect<void, Failure> =>
    Effect.forEach(
      limits[kind],
      ({ limit, seconds }) =>
        limiter.consume({ key: `${kind} ${seconds} ${key}`, limit, window: Duration.seconds(seconds) }),
      {
        discard: true
      }
    ).pipe(Effect.catch(({ reason }) =>
      reason._tag === "RateLimitExceeded"
        ? Effect.fail(
          failure(Code.tooMany, `Too many requests of this ${kind}; try again later`, {
            retry_after: Math.max(1, Math.ceil(Duration.toSeconds(reason.retryAfter)))
          })
        )
        : Effect.die(reason)
    ))

  return RateLimits.of({ isOn: (kind) => limits[kind].length > 0, check })
})

export class RateLimits extends Context.Service<RateLimits, {
  readonly isOn: (kind: keyof RateLimitOptions) => boolean
  /** Counts a request; fails with 42900 and `retry_after` when there were too many. Each node counts by itself. */
  readonly check: (kind: keyof RateLimitOptions, key: string) => Effect.Effect<void, Failure>
}>()("@device-cloud/http/RateLimits") {
  static readonly layer = (options: RateLimitOptions): Layer.Layer<RateLimits, InvalidRateLimit> =>
    Layer.effect(RateLimits, make(options)).pipe(
      Layer.provide(RateLimiter.layer),
      Layer.provide(RateLimiter.layerStoreMemory)
    )
}
