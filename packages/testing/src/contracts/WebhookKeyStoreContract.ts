/**
 * The laws of `WebhookKeyStore`.
 */
import { type DeviceCloud, ProjectStore, type WebhookKeys, WebhookKeyStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject } from "./Samples.ts"

const keysOf = (current: string, at: number, previous: WebhookKeys["previous"] = null): WebhookKeys => ({
  current,
  createdAt: epoch + at,
  previous
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`WebhookKeyStore: ${name}`, (it) => {
    it.effect("keys are replaced only by who knows them", () =>
      Effect.gen(function*() {
        const keys = yield* WebhookKeyStore
        const [{ id }, other] = [yield* insertProject, yield* insertProject]
        assert.isTrue(Option.isNone(yield* keys.get(id)))
        const first = keysOf("a", 0)
        // Who knows keys that are not there knows nothing.
        assert.strictEqual(yield* keys.put(id, epoch, first), "changed")
        assert.isTrue(Option.isNone(yield* keys.get(id)))
        assert.strictEqual(yield* keys.put(id, null, first), "stored")
        assert.strictEqual(yield* keys.put(id, null, keysOf("b", 1)), "changed")
        assert.deepStrictEqual(Option.getOrThrow(yield* keys.get(id)), first)
        assert.strictEqual(yield* keys.put(other.id, null, first), "stored")
        const second = keysOf("b", 1, { key: "a", until: epoch + 2 })
        assert.strictEqual(yield* keys.put(id, epoch, second), "stored")
        assert.strictEqual(yield* keys.put(id, epoch, keysOf("c", 2)), "changed")
        assert.deepStrictEqual(Option.getOrThrow(yield* keys.get(id)), second)
        assert.deepStrictEqual(yield* keys.get(other.id), Option.some(first))
      }))

    it.effect("of several who make or replace the keys at the same time, one does", () =>
      Effect.gen(function*() {
        const keys = yield* WebhookKeyStore
        const { id } = yield* insertProject
        for (const [before, at] of [[null, 0], [epoch, 1]] as const) {
          const candidates = Array.from({ length: 10 }, (_, i) => keysOf(`${at}/${i}`, at))
          const stored = yield* Effect.forEach(candidates, (candidate) => keys.put(id, before, candidate), {
            concurrency: "unbounded"
          })
          assert.deepStrictEqual(
            candidates.filter((_, i) => stored[i] === "stored"),
            [Option.getOrThrow(yield* keys.get(id))]
          )
        }
      }))

    it.effect("keys go with their project, and none are made after it", () =>
      Effect.gen(function*() {
        const keys = yield* WebhookKeyStore
        const { id } = yield* insertProject
        yield* keys.put(id, null, keysOf("a", 0))
        assert.strictEqual(yield* (yield* ProjectStore).remove(id), "removed")
        assert.isTrue(Option.isNone(yield* keys.get(id)))
        assert.strictEqual(yield* keys.put(id, epoch, keysOf("b", 1)), "changed")
        assert.strictEqual(yield* keys.put(id, null, keysOf("c", 2)), "no-project")
        assert.isTrue(Option.isNone(yield* keys.get(id)))
      }))
  })
