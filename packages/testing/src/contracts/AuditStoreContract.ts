/**
 * The laws of `AuditStore`.
 */
import {
  type AuditFilter,
  AuditStore,
  type DeviceCloud,
  emptyModel,
  IdempotencyStore,
  type NewAuditEntry,
  ProductKey,
  ProjectStore,
  ThingModelStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer, Option, Struct } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject, newProject, unique } from "./Samples.ts"

const newEntry = (fields: Partial<NewAuditEntry> = {}): NewAuditEntry => ({
  at: epoch,
  projectId: "project",
  keyId: "key",
  keyName: "Key",
  action: "products.createProduct",
  resource: { kind: "product", id: "a1B2c3D4e5F" },
  address: "192.0.2.1",
  result: 0,
  requestId: "request",
  ...fields
})

/** The entries of the project without their ids. */
const read = (projectId: string, filter: AuditFilter = {}) =>
  Effect.map(
    Effect.flatMap(AuditStore, (store) => store.read(projectId, filter, { limit: 1000 })),
    (entries) => entries.map((entry): NewAuditEntry => Struct.omit(entry, ["id"]))
  )

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`AuditStore: ${name}`, (it) => {
    it.effect("keeps entries as they were stored, the newest first, those of one instant in their order", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projectId = unique("project")
        const entries = [
          newEntry({ projectId, requestId: "1", at: epoch + 1 }),
          newEntry({ projectId, requestId: "2", result: 40_300 }),
          newEntry({ projectId, requestId: "3", keyName: "Schlüssel \"ü\"", address: "2001:db8::1" })
        ]
        yield* store.append(entries)
        yield* store.append([])
        assert.deepStrictEqual(yield* read(projectId), [entries[0]!, entries[2]!, entries[1]!])
        assert.deepStrictEqual(yield* read(unique("project")), [])
      }))

    it.effect("selects entries by all given fields", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projectId = unique("project")
        const mine = newEntry({ projectId, keyId: "mine" })
        const other = newEntry({ projectId, action: "devices.deleteDevice", at: epoch + 1 })
        const third = newEntry({ projectId, resource: { kind: "device", id: "d" }, at: epoch + 2 })
        const elsewhere = unique("project")
        const foreign = [mine, other, third].map((entry) => ({ ...entry, projectId: elsewhere }))
        yield* store.append([mine, other, third, ...foreign])
        assert.deepStrictEqual(yield* read(projectId, { keyId: "mine" }), [mine])
        assert.deepStrictEqual(yield* read(projectId, { action: "devices.deleteDevice" }), [other])
        assert.deepStrictEqual(yield* read(projectId, { resource: "d" }), [third])
        assert.deepStrictEqual(yield* read(projectId, { start: epoch + 1, end: epoch + 2 }), [other])
        assert.deepStrictEqual(yield* read(projectId, { resource: "d", keyId: "mine" }), [])
        assert.deepStrictEqual(yield* read(projectId, { resource: "d", keyId: "key" }), [third])
      }))

    it.effect("reads on after an entry, without gaps and without the same one twice", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projectId = unique("project")
        const entries = Array.from({ length: 25 }, (_, i) =>
          newEntry({ projectId, requestId: String(i), at: epoch + Math.floor(i / 4) }))
        // Clocks of nodes differ: what is stored later may be earlier.
        yield* store.append([...entries.slice(12), ...entries.slice(0, 12)])
        const found: Array<string> = []
        let after: { readonly at: number; readonly id: number } | undefined
        while (true) {
          const page = yield* store.read(projectId, {}, { limit: 4, after })
          found.push(...page.map(({ requestId }) =>
            requestId
          ))
          assert.isAtMost(page.length, 4)
          after = page.at(-1)
          if (page.length < 4) break
        }
        assert.deepStrictEqual(found, entries.map(({ requestId }) => requestId).toReversed())
      }))

    it.effect("stores entries with a write, or neither of them", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projects = yield* ProjectStore
        const project = newProject()
        const entry = newEntry({ projectId: project.id })
        assert.isTrue(yield* store.commit(projects.insert(project), (isNew) => isNew ? [entry] : []))
        assert.isFalse(yield* store.commit(projects.insert(project), (isNew) => isNew ? [entry] : undefined))
        assert.deepStrictEqual(yield* read(project.id), [entry])
        // A write that is refused because of a statement that fails.
        const models = yield* ThingModelStore
        const model = models.insert(ProductKey.make("missing"), { version: 1, model: emptyModel, createdAt: epoch })
        assert.isFalse(yield* store.commit(model, (isNew) => isNew ? [entry] : undefined))
        const failed = yield* Effect.exit(store.commit(Effect.fail("no"), () => [entry]))
        assert.deepStrictEqual(failed, Exit.fail("no"))
        assert.deepStrictEqual(yield* read(project.id), [entry])
        // The result is that of the write itself, not a copy.
        const result = { stored: new Map([["device", new Uint8Array(2)]]), none: undefined }
        for (const entries of [[], undefined]) {
          assert.strictEqual(yield* store.commit(Effect.succeed(result), () => entries), result)
        }
      }))

    it.effect("notes with the entry that a request was carried out, or neither", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const requests = yield* IdempotencyStore
        const { id: projectId } = yield* insertProject
        const request = { projectId, key: unique("key"), at: epoch }
        const claim = (of: Pick<typeof request, "projectId" | "key">) =>
          requests.claim({
            ...request,
            ...of,
            fingerprint: "first",
            claimExpiredBefore: epoch,
            answerExpiredBefore: epoch
          })
        const state = claim(request)
        // Requests of the same time, and of the same key in another project.
        const others = [
          claim({ projectId, key: unique("key") }),
          claim({ ...request, projectId: (yield* insertProject).id })
        ]
        for (const claimed of [state, ...others]) yield* claimed
        const entry = newEntry({ projectId })
        const entries = [{ ...entry, claim: request }, newEntry({ projectId, claim: { ...request, at: epoch - 1 } })]
        yield* Effect.exit(store.commit(Effect.fail("no"), () => entries))
        assert.strictEqual((yield* state)._tag, "InProgress")
        yield* store.commit(Effect.void, () => entries)
        assert.deepStrictEqual(yield* read(projectId), [entry, entry])
        const notKept = { _tag: "Answered", fingerprint: "first", answer: { status: 200, body: null } } as const
        assert.deepStrictEqual(yield* state, notKept)
        for (const other of others) assert.strictEqual((yield* other)._tag, "InProgress")
        yield* requests.release(request)
        assert.deepStrictEqual(yield* state, notKept)
        yield* requests.answer(request, { status: 201, body: "kept" })
        assert.deepStrictEqual(yield* state, { ...notKept, answer: { status: 201, body: "kept" } })
      }))

    it.effect("loses no entry of many writes at the same time", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projects = yield* ProjectStore
        const projectId = unique("project")
        const made = Array.from({ length: 30 }, newProject)
        yield* Effect.forEach(
          made,
          (project) =>
            store.commit(
              projects.insert(project),
              () => [newEntry({ projectId, resource: { kind: "project", id: project.id } })]
            ),
          { concurrency: "unbounded", discard: true }
        )
        const told = (yield* read(projectId)).map(({ resource }) => resource.id)
        assert.sameMembers(told, made.map(({ id }) => id))
        for (const { id } of made) assert.isTrue(Option.isSome(yield* projects.get(id)))
      }))

    it.effect("deletes the oldest entries, a few at a time", () =>
      Effect.gen(function*() {
        const store = yield* AuditStore
        const projectId = unique("project")
        // Older than the entries of the other tests.
        const long = Date.UTC(2001, 0, 1)
        const entries = [3, 1, 2, 4].map((day) => newEntry({ projectId, at: long + day }))
        yield* store.append(entries)
        assert.strictEqual(yield* store.prune({ before: long + 4, limit: 2 }), 2)
        assert.deepStrictEqual(yield* read(projectId), [entries[3]!, entries[0]!])
        assert.strictEqual(yield* store.prune({ before: long + 4, limit: 2 }), 1)
        assert.strictEqual(yield* store.prune({ before: long + 4, limit: 2 }), 0)
        assert.deepStrictEqual(yield* read(projectId), [entries[3]!])
      }))
  })
