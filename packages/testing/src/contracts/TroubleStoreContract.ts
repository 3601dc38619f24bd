/**
 * The laws of `TroubleStore`.
 */
import { type DeviceCloud, ProjectStore, type Trouble, troubleMillis, TroubleStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject, newProject } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`TroubleStore on ${name}`, (it) => {
    const sample = Effect.gen(function*() {
      const store = yield* TroubleStore
      const { id: projectId } = yield* insertProject
      const trouble = (fields: Partial<Trouble> = {}): Trouble => ({
        projectId,
        kind: "refused",
        subject: "device",
        times: 1,
        detail: "460",
        since: epoch,
        at: epoch,
        ...fields
      })
      return { store, projectId, trouble }
    })

    it.effect("adds up what is noted, and begins anew when trouble was over", () =>
      Effect.gen(function*() {
        const { projectId, store, trouble } = yield* sample
        const latest = store.latest(projectId, epoch, 10)
        yield* store.note([trouble({ times: 2, at: epoch + 5 }), trouble({ kind: "flapping" })])
        yield* store.note([trouble({ times: 3, since: epoch + 6, at: epoch + 9, detail: "429" })])
        yield* store.note([trouble({ since: epoch - 1, detail: "old" }), trouble({ projectId: newProject().id })])
        yield* store.note([trouble({ since: epoch + 10, at: epoch + 10, detail: "429" })])
        assert.deepStrictEqual(yield* latest, [
          trouble({ kind: "flapping" }),
          trouble({ times: 7, since: epoch - 1, at: epoch + 10, detail: "429" })
        ])
        const anew = trouble({ since: epoch + 10 + troubleMillis, at: epoch + 10 + troubleMillis })
        yield* store.note([anew])
        assert.deepStrictEqual((yield* latest).slice(1), [anew])
        yield* (yield* ProjectStore).remove(projectId)
        yield* store.note([anew])
        assert.deepStrictEqual(yield* latest, [])
      }))

    it.effect("adds up what many note at once, and returns the worst of each kind", () =>
      Effect.gen(function*() {
        const { projectId, store, trouble } = yield* sample
        const some = [1, 2, 3, 4].map((times) => trouble({ subject: `d${times}`, times }))
        yield* Effect.all(
          Array.from({ length: 10 }, (_, i) => store.note(i % 2 === 0 ? some : some.toReversed())),
          { concurrency: "unbounded" }
        )
        yield* store.note([trouble({ kind: "execution-failed", subject: "scene" })])
        const worst = yield* store.latest(projectId, epoch, 2)
        assert.deepStrictEqual(worst.map(({ subject, times }) => [subject, times]), [["scene", 1], ["d4", 40], [
          "d3",
          30
        ]])
        assert.deepStrictEqual(yield* store.latest(projectId, epoch + 1, 2), [])
        // Of as many times, the latest comes first.
        yield* store.note([trouble({ subject: "d5", times: 40, at: epoch + 1 })])
        const subjects = (yield* store.latest(projectId, epoch, 2)).map(({ subject }) => subject)
        assert.deepStrictEqual(subjects, ["scene", "d5", "d4"])
      }))

    it.effect("forgets what was long ago, a part at a time", () =>
      Effect.gen(function*() {
        const { projectId, store, trouble } = yield* sample
        // These times are earlier than those of other tests.
        const old = epoch - 1_000_000_000
        yield* store.note([0, 1, 2].map((after) => trouble({ subject: `d${after}`, since: old, at: old + after })))
        const prune = (limit: number) => store.prune({ before: old + 2, limit })
        assert.deepStrictEqual([yield* prune(1), yield* prune(10), yield* prune(10)], [1, 1, 0])
        assert.deepStrictEqual((yield* store.latest(projectId, old, 10)).map(({ subject }) => subject), ["d2"])
      }))
  })
}
