import {
  AccessKeys,
  type BrowserSession,
  BrowserSessions,
  BrowserSessionStore,
  defaultProjectId,
  DeviceCloud,
  Projects,
  Quotas
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Identifiers } from "../src/kernel/Identifiers.ts"

/** What is stored, in the order in which it comes. */
const stored: Array<BrowserSession> = []

const stores = Layer.effect(
  BrowserSessionStore,
  Effect.map(BrowserSessionStore, (store) => ({
    ...store,
    insert: (session: BrowserSession, limit: number) => {
      stored.push(session)
      return store.insert(session, limit)
    }
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))

/** Without the timers of a whole cloud, which take their time when hours pass. */
const services = Layer.mergeAll(BrowserSessions.layer, Projects.layer).pipe(
  Layer.provideMerge(AccessKeys.layer),
  Layer.provide(Quotas.layer),
  Layer.provide(Identifiers.layer),
  Layer.provideMerge(stores),
  Layer.provide(PlatformNode.layer)
)

const hour = 3_600_000

const newKey = (expiresAt?: number) =>
  AccessKeys.use((keys) => keys.create(defaultProjectId, { name: "browser", role: "viewer", expiresAt }))

const signIn = (key: Redacted.Redacted) =>
  Effect.gen(function*() {
    const principal = yield* (yield* AccessKeys).authenticate(key)
    return { principal, ...yield* (yield* BrowserSessions).signIn(principal) }
  })

const works = (token: Redacted.Redacted) =>
  BrowserSessions.use((sessions) => Effect.isSuccess(sessions.authenticate(token)))

it.effect("a session stands for its key, for twelve hours", () =>
  Effect.gen(function*() {
    const sessions = yield* BrowserSessions
    const { key } = yield* newKey()
    const { expiresAt, principal, token } = yield* signIn(key)
    assert.strictEqual(expiresAt, 12 * hour)
    assert.deepStrictEqual(yield* sessions.authenticate(token), { principal, expiresAt })
    yield* TestClock.adjust(12 * hour - 1000)
    const ended = yield* Effect.forkChild(sessions.ended(token))
    yield* TestClock.adjust("999 millis")
    assert.isTrue(yield* works(token))
    assert.isUndefined(ended.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Effect.flip(sessions.authenticate(token)))._tag, "UnknownBrowserSession")
    yield* Fiber.join(ended)
  }).pipe(Effect.provide(services)))

it.effect("a session ends with its key if that ends sooner", () =>
  Effect.gen(function*() {
    const { key } = yield* newKey(hour)
    const { expiresAt, token } = yield* signIn(key)
    assert.strictEqual(expiresAt, hour)
    yield* TestClock.adjust(hour - 1)
    assert.isTrue(yield* works(token))
    yield* TestClock.adjust(1)
    assert.isFalse(yield* works(token))
  }).pipe(Effect.provide(services)))

it.effect("keeps the hash of a token, knows no other text, and forgets sessions that have ended", () =>
  Effect.gen(function*() {
    const { token } = yield* signIn((yield* newKey()).key)
    const text = Redacted.value(token)
    assert.match(text, /^[A-Za-z0-9_-]{43}$/)
    const { hash } = stored.at(-1)!
    assert.match(hash, /^[0-9a-f]{64}$/)
    assert.notInclude(JSON.stringify(stored), text)
    for (const other of ["", "x", text.slice(1), `${text}x`, hash, "A".repeat(43)]) {
      assert.isFalse(yield* works(Redacted.make(other)))
    }
    const found = Effect.map((yield* BrowserSessionStore).find(hash), Option.isSome)
    assert.isTrue(yield* found)
    yield* TestClock.adjust(13 * hour)
    assert.isFalse(yield* found)
  }).pipe(Effect.provide(services)))

it.effect("a key has a hundred sessions, the latest", () =>
  Effect.gen(function*() {
    const { key } = yield* newKey()
    const tokens = yield* Effect.forEach(
      Array.from({ length: 102 }),
      () => Effect.map(signIn(key), ({ token }) => token)
    )
    assert.deepStrictEqual(yield* Effect.forEach(tokens.slice(0, 4), works), [false, false, true, true])
    assert.isTrue(yield* works(tokens[101]!))
  }).pipe(Effect.provide(services)))

it.effect("a session ends on all nodes with its key at once, and within a second after signing out", () =>
  Effect.gen(function*() {
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
    const [first, second] = [yield* node, yield* node]
    // A node hears the others a moment after its start.
    yield* TestClock.adjust("1 milli")
    const { accessKey, key } = yield* Effect.provide(newKey(), first)
    const [left, right] = yield* Effect.provide(Effect.all([signIn(key), signIn(key)]), first)
    const workOn = (context: typeof first) => Effect.provide(Effect.forEach([left.token, right.token], works), context)
    assert.deepStrictEqual(yield* workOn(second), [true, true])
    yield* Effect.provide(BrowserSessions.use((sessions) => sessions.signOut(left.token)), first)
    assert.deepStrictEqual(yield* workOn(first), [false, true])
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* workOn(second), [false, true])
    yield* Effect.provide(AccessKeys.use((keys) => keys.remove(defaultProjectId, accessKey.id)), first)
    yield* TestClock.adjust("1 milli")
    for (const context of [first, second]) assert.deepStrictEqual(yield* workOn(context), [false, false])
  }).pipe(Effect.scoped, Effect.provide(StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer)))))

it.effect("a key that was removed after it was shown begins no session", () =>
  Effect.gen(function*() {
    const { accessKey, key } = yield* newKey()
    const { principal } = yield* signIn(key)
    yield* (yield* AccessKeys).remove(defaultProjectId, accessKey.id)
    const refused = yield* Effect.flip((yield* BrowserSessions).signIn(principal))
    assert.strictEqual(refused._tag, "UnknownAccessKey")
  }).pipe(Effect.provide(services)))
