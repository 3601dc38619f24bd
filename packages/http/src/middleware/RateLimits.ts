/**
 * Limits on how often a project, an address or a device may ask. Off unless they
 * are given.
 */
import { SharedCounts } from "@device-cloud/core"
import { Context, Duration, Effect, Layer, Schema } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { RateLimiter } from "effect/persistence"
import { TooManyRequests } from "../Failure.ts"
import { countedAddress } from "./ClientAddress.ts"
import { toResponse } from "./ErrorEnvelope.ts"

/** Each limit is a text such as `20:1,600:60`: 20 requests in a second and 600 in a minute. */
export interface RateLimitOptions {
  /** Of each project, over all of its access keys. */
  readonly project?: string | undefined
  /** Of each client address, but for `/healthz` and `/readyz`; of IPv6, of each network of 64 bits. */
  readonly address?: string | undefined
  /** Of each device, on the HTTP uplink. */
  readonly device?: string | undefined
}

/** A limit is not of the form `count:seconds`, several separated by commas. */
export class InvalidRateLimit extends Schema.TaggedError<InvalidRateLimit>()("InvalidRateLimit", {
  message: Schema.String
}) {}

/** The limits of the cloud. Nodes count together, but for what comes within a second. */
export class RateLimits extends Context.Service<RateLimits, {
  /** Whether there is a limit of this kind. */
  readonly isOn: (kind: keyof RateLimitOptions) => boolean
  /** Counts a request of `key`. Fails when there were too many, with the seconds until there may be another. */
  readonly check: (kind: keyof RateLimitOptions, key: string) => Effect.Effect<void, typeof TooManyRequests.Type>
}>()("@device-cloud/http/RateLimits") {
  static readonly layer = (options: RateLimitOptions): Layer.Layer<RateLimits, InvalidRateLimit, SharedCounts> =>
    Layer.effect(RateLimits, Effect.suspend(() => make(options))).pipe(
      Layer.provide(RateLimiter.layer),
      Layer.provide(RateLimiter.layerStoreMemory)
    )
  /** No limits. */
  static readonly layerOff: Layer.Layer<RateLimits> = Layer.sync(
    RateLimits,
    () => RateLimits.of({ isOn: () => false, check: () => Effect.void })
  )
}

/** Counts a request of an address; responds in the place of `app` when there were too many. */
export const limitAddress = <E, R>(
  limits: RateLimits["Service"],
  request: HttpServerRequest.HttpServerRequest,
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  limits.isOn("address")
    ? Effect.matchEffect(limits.check("address", countedAddress(request)), {
      onSuccess: () => app,
      onFailure: (failure) => Effect.succeed(toResponse(failure))
    })
    : app

/** Keys that are counted for the other nodes within a second. */
const maxCounted = 10_000

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

  /** How many requests there were since the other nodes were told, by kind, window and key. */
  const counted = new Map<string, number>()
  const keyOf = (kind: string, seconds: number, key: string) => `${kind} ${seconds} ${key}`
  const count = (key: string) => {
    if (counted.size < maxCounted) counted.set(key, (counted.get(key) ?? 0) + 1)
  }
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  yield* (yield* SharedCounts).share({
    name: "http/requests",
    counted: () => {
      const all = [...counted]
      counted.clear()
      return all
    },
    charge: (key, tokens) => {
      const [kind, window] = key.split(" ")
      const limit = limits[kind as keyof RateLimitOptions]?.find(({ seconds }) => seconds === Number(window))
      if (limit === undefined) return
      const charged = { key, tokens, limit: limit.limit, window: Duration.seconds(limit.seconds) }
      // To be delayed means to be counted in any case.
      runFork(Effect.ignore(limiter.consume({ ...charged, onExceeded: "delay" })))
    }
  })

  const check = (kind: keyof RateLimitOptions, key: string): Effect.Effect<void, typeof TooManyRequests.Type> =>
    Effect.forEach(
      limits[kind],
      ({ limit, seconds }) =>
        Effect.tap(
          limiter.consume({ key: keyOf(kind, seconds, key), limit, window: Duration.seconds(seconds) }),
          () => Effect.sync(() => count(keyOf(kind, seconds, key)))
        ),
      { discard: true }
    ).pipe(Effect.catch(({ reason }) =>
      reason._tag === "RateLimitExceeded"
        ? Effect.fail(
          TooManyRequests.make({
            message: `Too many requests of this ${kind}; try again later`,
            data: { retry_after: Math.max(1, Math.ceil(Duration.toSeconds(reason.retryAfter))) }
          })
        )
        : Effect.die(reason)
    ))

  return RateLimits.of({ isOn: (kind) => limits[kind].length > 0, check })
})
