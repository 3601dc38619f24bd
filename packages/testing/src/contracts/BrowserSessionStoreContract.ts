/**
 * The laws of `BrowserSessionStore`.
 */
import {
  AccessKeyStore,
  type BrowserSession,
  BrowserSessionStore,
  defaultProjectId,
  type DeviceCloud,
  type ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { newKey } from "./AccessKeyStoreContract.ts"
import { epoch, insertProject, newProject, unique } from "./Samples.ts"

/** Sessions of one key. */
const limit = 3

const newSession = (accessKeyId: string, fields: Partial<BrowserSession> = {}): BrowserSession => ({
  hash: unique("hash"),
  accessKeyId,
  createdAt: epoch,
  expiresAt: epoch + 1000,
  ...fields
})

const insertKey = Effect.fnUntraced(function*(projectId: ProjectId, fields: Parameters<typeof newKey>[1] = {}) {
  const key = newKey(projectId, fields)
  yield* (yield* AccessKeyStore).insert(key)
  return key
})

const insertSession = (accessKeyId: string, fields?: Partial<BrowserSession>) =>
  BrowserSessionStore.use((store) => {
    const session = newSession(accessKeyId, fields)
    return Effect.as(store.insert(session, limit), session)
  })

/** Which of the sessions are there. */
const found = (sessions: ReadonlyArray<BrowserSession>) =>
  BrowserSessionStore.use((store) =>
    Effect.forEach(sessions, ({ hash }) => Effect.map(store.find(hash), Option.isSome))
  )

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`BrowserSessionStore: ${name}`, (it) => {
    it.effect("keeps what was inserted until it is removed", () =>
      Effect.gen(function*() {
        const store = yield* BrowserSessionStore
        const { id } = yield* insertKey((yield* insertProject).id)
        const session = newSession(id)
        const other = yield* insertSession(id)
        assert.isTrue(yield* store.insert(session, limit))
        assert.deepStrictEqual(yield* store.find(session.hash), Option.some(session))
        assert.isTrue(Option.isNone(yield* store.find(unique("hash"))))
        assert.isTrue(yield* store.remove(session.hash))
        assert.isFalse(yield* store.remove(session.hash))
        assert.deepStrictEqual(yield* found([session, other]), [false, true])
      }))

    it.effect("refuses a session of a key that does not exist", () =>
      Effect.gen(function*() {
        const store = yield* BrowserSessionStore
        const session = newSession("missing")
        assert.isFalse(yield* store.insert(session, limit))
        assert.isTrue(Option.isNone(yield* store.find(session.hash)))
      }))

    it.effect("keeps the latest sessions of a key, and leaves those of others alone", () =>
      Effect.gen(function*() {
        const { id: projectId } = yield* insertProject
        const [mine, other] = [yield* insertKey(projectId), yield* insertKey(projectId)]
        const foreign = yield* insertSession(other.id)
        const ofOneInstant = [yield* insertSession(mine.id), yield* insertSession(mine.id)]
        const later = [
          yield* insertSession(mine.id, { createdAt: epoch + 1 }),
          yield* insertSession(mine.id, { createdAt: epoch + 2 })
        ]
        assert.deepStrictEqual(yield* found([...ofOneInstant, ...later, foreign]), [false, true, true, true, true])
      }))

    it.effect("keeps no more of a key when browsers sign in at the same time", () =>
      Effect.gen(function*() {
        const { id } = yield* insertKey((yield* insertProject).id)
        const sessions = yield* Effect.forEach(Array.from({ length: 8 }), () => insertSession(id), {
          concurrency: "unbounded"
        })
        assert.lengthOf((yield* found(sessions)).filter(Boolean), limit)
      }))

    it.effect("a session goes with its key, alone, with others that come from one, and with the project", () =>
      Effect.gen(function*() {
        const keys = yield* AccessKeyStore
        const { id: projectId } = yield* insertProject
        const sessionOf = (createdBy: string | null = null) =>
          Effect.flatMap(insertKey(projectId, { createdBy }), ({ id }) => insertSession(id))
        const alone = yield* sessionOf()
        const root = yield* sessionOf()
        const child = yield* sessionOf(root.accessKeyId)
        const kept = yield* sessionOf()
        yield* keys.remove(projectId, alone.accessKeyId)
        yield* keys.remove(projectId, root.accessKeyId, { cascade: true })
        assert.deepStrictEqual(yield* found([alone, root, child, kept]), [false, false, false, true])
        yield* (yield* ProjectStore).remove(projectId)
        assert.deepStrictEqual(yield* found([kept]), [false])
      }))

    it.effect("a session of the owner stays while the owner's key does", () =>
      Effect.gen(function*() {
        const keys = yield* AccessKeyStore
        yield* (yield* ProjectStore).insert({ ...newProject(), id: defaultProjectId })
        const owner = newKey(defaultProjectId, { role: "owner" })
        yield* keys.replaceOwner(owner)
        const session = yield* insertSession(owner.id)
        yield* keys.replaceOwner({ ...owner, createdAt: epoch + 5 })
        assert.deepStrictEqual(yield* found([session]), [true])
        yield* keys.replaceOwner({ ...owner, hash: "b".repeat(64) })
        assert.deepStrictEqual(yield* found([session]), [false])
        const again = yield* insertSession(owner.id)
        yield* keys.replaceOwner(newKey(defaultProjectId, { role: "owner" }))
        assert.deepStrictEqual(yield* found([again]), [false])
      }))

    it.effect("removes sessions that have ended, so many at a time", () =>
      Effect.gen(function*() {
        const store = yield* BrowserSessionStore
        const { id: projectId } = yield* insertProject
        const session = (expiresAt: number) =>
          Effect.flatMap(insertKey(projectId), ({ id }) => insertSession(id, { expiresAt }))
        // Long ago: what other tests have stored lasts longer.
        const ended = [yield* session(1), yield* session(2)]
        const lasting = yield* session(3)
        assert.strictEqual(yield* store.prune({ before: 3, limit: 1 }), 1)
        assert.strictEqual(yield* store.prune({ before: 3, limit: 10 }), 1)
        assert.strictEqual(yield* store.prune({ before: 3, limit: 10 }), 0)
        assert.deepStrictEqual(yield* found([...ended, lasting]), [false, false, true])
        yield* store.remove(lasting.hash)
      }))
  })
