/**
 * Signs browsers in and out (docs/decisions/0113-browser-sessions.md).
 */
import { Clock, Context, Effect, Layer, Option, Redacted, Schedule } from "effect"
import { Base64Url, Hex } from "effect/encoding"
import { Mac } from "../kernel/Mac.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { Randomness } from "../kernel/Randomness.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type Principal, UnknownAccessKey } from "./AccessKey.ts"
import { AccessKeys } from "./AccessKeys.ts"
import { isSessionToken, type SignedIn, type StartedSession, UnknownBrowserSession } from "./BrowserSession.ts"
import { BrowserSessionStore } from "./BrowserSessionStore.ts"

export class BrowserSessions extends Context.Service<BrowserSessions, {
  /**
   * Begins a session of a caller that `AccessKeys.authenticate` has returned. It ends
   * after twelve hours, or with its key. Of more than 100 sessions of a key, the
   * oldest end. Only this call returns the token: the store keeps its SHA-256. Fails
   * with `UnknownAccessKey` if the key was removed meanwhile.
   */
  readonly signIn: (principal: Principal) => Effect.Effect<StartedSession, UnknownAccessKey | StoreError>
  /**
   * Returns who is signed in, with the project and the rights that the key of the
   * session has now, and notes the use of the key. A session that was signed out
   * stops working at once on this node, and within a second on the others.
   */
  readonly authenticate: (token: Redacted.Redacted) => Effect.Effect<SignedIn, UnknownBrowserSession | StoreError>
  /** Ends the session, if there is one. */
  readonly signOut: (token: Redacted.Redacted) => Effect.Effect<void, StoreError>
  /**
   * Completes within a second after the session ends, for whatever reason. Waits on
   * while the store cannot be reached.
   */
  readonly ended: (token: Redacted.Redacted) => Effect.Effect<void>
}>()("@device-cloud/core/project/BrowserSessions") {
  static readonly layer: Layer.Layer<
    BrowserSessions,
    never,
    AccessKeys | BrowserSessionStore | Mac | Randomness
  > = Layer.effect(BrowserSessions, Effect.suspend(() => make))
}

/** How long a session lasts, milliseconds. */
const lifetime = 12 * 3_600_000
/** Sessions that an access key has at once. */
const maxSessions = 100
/** Bytes of a token. */
const tokenBytes = 32

/** Sessions that are remembered. */
const capacity = 10_000
/** How long a session that has ended on another node may still work here, milliseconds. */
const timeToLive = 500
/** How often `ended` looks at its session. */
const endedInterval = "250 millis"

const pruneEvery = "10 minutes"
/** Sessions that are removed at once. */
const pruneLimit = 1000

const make = Effect.gen(function*() {
  const accessKeys = yield* AccessKeys
  const store = yield* BrowserSessionStore
  const mac = yield* Mac
  const random = yield* Randomness

  const hashOf = (token: string): string => Hex.encode(mac.sha256(new TextEncoder().encode(token)))

  const known = yield* NodeCache.make({
    capacity,
    timeToLive,
    load: (hashes: ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(hashes, store.find),
        (found) => new Map(found.flatMap(Option.toArray).map((session) => [session.hash, session]))
      )
  })

  const signIn = Effect.fn("BrowserSessions.signIn")(function*({ accessKeyId, expiresAt: keyEnds }: Principal) {
    const token = Base64Url.encode(random.bytes(tokenBytes))
    const createdAt = yield* Clock.currentTimeMillis
    const expiresAt = Math.min(createdAt + lifetime, keyEnds ?? Infinity)
    const isStored = yield* store.insert({ hash: hashOf(token), accessKeyId, createdAt, expiresAt }, maxSessions)
    return isStored ? { token: Redacted.make(token), expiresAt } : yield* new UnknownAccessKey()
  })

  /** The session of a token that has not ended. */
  const find = Effect.fnUntraced(function*(redacted: Redacted.Redacted) {
    const token = Redacted.value(redacted)
    if (!isSessionToken(token)) return yield* new UnknownBrowserSession()
    const hash = hashOf(token)
    const session = known.fresh(hash) ?? (yield* known.get([hash])).get(hash)
    const hasEnded = session === undefined || session.expiresAt <= (yield* Clock.currentTimeMillis)
    return hasEnded ? yield* new UnknownBrowserSession() : session
  })

  const authenticate = Effect.fnUntraced(function*(token: Redacted.Redacted) {
    const { accessKeyId, expiresAt } = yield* find(token)
    const principal = yield* accessKeys.principalOf(accessKeyId).pipe(
      Effect.catchTag(["UnknownAccessKey", "AccessKeyExpired"], () => Effect.fail(new UnknownBrowserSession()))
    )
    return { principal, expiresAt }
  })

  const signOut = Effect.fn("BrowserSessions.signOut")(function*(token: Redacted.Redacted) {
    const hash = hashOf(Redacted.value(token))
    yield* store.remove(hash)
    known.forget(hash)
  })

  const isEnded = (token: Redacted.Redacted) =>
    Effect.matchEager(find(token), {
      onSuccess: () => false,
      onFailure: ({ _tag }) => _tag === "UnknownBrowserSession"
    })

  const ended = (token: Redacted.Redacted) =>
    isEnded(token).pipe(
      Effect.repeat({ until: (isOver) => isOver, schedule: Schedule.spaced(endedInterval) }),
      Effect.asVoid
    )

  const prune = Effect.gen(function*() {
    const before = yield* Clock.currentTimeMillis
    while ((yield* store.prune({ before, limit: pruneLimit })) === pruneLimit) yield* Effect.yieldNow
  })
  yield* prune.pipe(
    Effect.catch((error) => Effect.logWarning("Old browser sessions could not be forgotten", error)),
    Periodic.every(pruneEvery)
  )

  return BrowserSessions.of({ signIn, authenticate, signOut, ended })
})
