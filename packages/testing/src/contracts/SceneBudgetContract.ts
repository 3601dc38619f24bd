/**
 * The laws of `ExecutionStore` by which scenes of one project do not harm others:
 * budgets of trees, counts of what waits, and fair claims.
 */
import {
  type DeviceCloud,
  ExecutionStore,
  growTree,
  pendingExecution,
  type ProjectId,
  type SceneTree,
  type TreeGrowth,
  treeKeptMillis
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject, unique } from "./Samples.ts"
import { all, claim, ended, firing, insert, newScene } from "./SceneSamples.ts"

const limits = { actions: 10, duration: 1000 }

const growth = (fields: Partial<TreeGrowth> = {}): TreeGrowth => ({ at: epoch, own: 1, adds: 1, limits, ...fields })

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores))(`budgets of scenes on ${name}`, (it) => {
    it.effect("a tree grows until its budget is used up, and then stores nothing more", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const rootId = unique("root")
        const [first, second, third] = [firing(scene), firing(scene), firing(scene)]
        assert.isNull(yield* store.enqueueChild(first, rootId, growth({ own: 4, adds: 3 })))
        // Another attempt stores and counts nothing.
        assert.isNull(yield* store.enqueueChild(first, rootId, growth({ own: 4, adds: 3 })))
        assert.isNull(yield* store.enqueueChild(second, rootId, growth({ adds: 3 })))
        assert.strictEqual((yield* store.endedTrees([rootId])).size, 0)
        assert.strictEqual(yield* store.enqueueChild(third, rootId, growth()), "actions")
        assert.strictEqual(yield* store.enqueueChild(firing(scene), rootId, growth()), "actions")
        assert.deepStrictEqual([...yield* store.endedTrees(["other", rootId])], [[rootId, "actions"]])
        const claimed = yield* claim([scene], epoch)
        assert.deepStrictEqual(
          claimed.map(({ executionId, rootId }) => [executionId, rootId]).toSorted(),
          [first, second].map(({ executionId }) => [executionId, rootId]).toSorted()
        )
        assert.deepInclude(claimed.find(({ executionId }) => executionId === first.executionId), first)
        const { items } = yield* store.executions(scene.sceneId, all)
        assert.deepStrictEqual(items.map((execution) => execution.rootId), [rootId, rootId])
      }))

    it.effect("a tree ends with its time", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const rootId = unique("root")
        const grow = (at: number) => store.enqueueChild(firing(scene, at), rootId, growth({ at }))
        assert.deepStrictEqual(yield* Effect.forEach([epoch, epoch + 999, epoch + 1000, epoch], grow), [
          null,
          null,
          "duration",
          "duration"
        ])
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 2)
        // It is forgotten when its root must be over.
        const later = epoch + treeKeptMillis + 1
        yield* store.enqueueChild(firing(scene, later), unique("root"), growth({ at: later }))
        assert.strictEqual((yield* store.endedTrees([rootId])).size, 0)
      }))

    it.effect("a tree grows as the rule of the core says", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        let number = 0
        const next = (below: number) => (number = (number * 29 + 17) % 1009) % below
        for (let i = 0; i < 40; i++) {
          const rootId = unique("root")
          let tree: SceneTree | undefined
          for (let at = epoch; tree === undefined || (tree.ended === null && at < epoch + 5000); at += next(300)) {
            const step = growth({ at, own: 1 + next(12), adds: 1 + next(5) })
            tree = growTree(tree, step)
            assert.strictEqual(yield* store.enqueueChild(firing(scene, at), rootId, step), tree.ended)
          }
        }
      }))

    it.effect("many that grow a tree at the same time stay within its budget together", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const rootId = unique("root")
        const ends = yield* Effect.all(
          Array.from({ length: 30 }, () => store.enqueueChild(firing(scene), rootId, growth())),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(ends.filter((end) => end === null).length, 9)
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 9)
      }))

    it.effect("a scene that is gone is not stored by a tree", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const gone = newScene(yield* insertProject)
        assert.isNull(yield* store.enqueueChild(firing(gone), unique("root"), growth()))
        assert.strictEqual((yield* store.executions(gone.sceneId, all)).total, 0)
      }))

    it.effect("what waits is counted by project, up to a limit", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const [busy, other, idle] = [
          yield* insert(yield* insertProject),
          yield* insert(yield* insertProject),
          yield* insert(yield* insertProject)
        ]
        const [done, future] = [firing(busy), firing(busy, epoch + 1_000_000)]
        yield* store.enqueue([done, firing(busy), future, firing(other)])
        const claimed = yield* claim([busy], epoch)
        yield* store.save(
          claimed.filter(({ executionId }) => executionId === done.executionId).map((execution) => ended(execution)),
          epoch
        )
        const count = (limit: number) =>
          Effect.map(
            store.countPending([busy, other, idle].map(({ projectId }) => projectId), limit),
            (counts) => [busy, other, idle].map(({ projectId }) => counts.get(projectId))
          )
        assert.deepStrictEqual(yield* count(10), [2, 1, undefined])
        assert.deepStrictEqual(yield* count(1), [1, 1, undefined])
      }))

    it.effect("an entry about what was not carried out stays the newest of its scene", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const entry = (reason: string, at: number) =>
          ended(pendingExecution(firing(scene, at)), {
            executionId: `${scene.sceneId}.limited`,
            status: "limited",
            reason,
            verdict: null
          })
        yield* store.note([entry("first", epoch)])
        yield* store.enqueue([firing(scene)])
        yield* store.note([
          { ...entry("gone", epoch), sceneId: newScene(yield* insertProject).sceneId },
          entry("second", epoch + 1)
        ])
        const { items } = yield* store.executions(scene.sceneId, all)
        assert.deepStrictEqual(items.map(({ status }) => status), ["limited", "pending"])
        assert.deepStrictEqual(items[0], entry("second", epoch + 1))
        assert.deepStrictEqual((yield* claim([scene], epoch + 900_000)).length, 1)
      }))

    it.effect("a claim is shared among projects, and the longest due of each come first", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        // Due before those of all other tests.
        const past = epoch - 1_000_000
        const [busy, other] = [yield* insert(yield* insertProject), yield* insert(yield* insertProject)]
        const backlog = Array.from({ length: 50 }, (_, place) => firing(busy, past + place))
        const single = firing(other, past + 100)
        yield* store.enqueue([...backlog, single])
        const claimOf = (limit: number, except: ReadonlyArray<ProjectId> = []) =>
          Effect.map(
            store.claim({ now: past + 100, again: past + 1000, limit, except }),
            (claimed) => claimed.map(({ executionId }) => executionId).toSorted()
          )
        const ids = (from: number, to: number) => backlog.slice(from, to).map(({ executionId }) => executionId)
        assert.deepStrictEqual(yield* claimOf(10), [...ids(0, 5), single.executionId].toSorted())
        assert.deepStrictEqual(yield* claimOf(10), ids(5, 15).toSorted())
        // There are more projects than places: each has its turn.
        yield* store.enqueue([firing(other, past + 100)])
        const owners = new Set<string>()
        for (let round = 0; round < 40 && owners.size < 2; round++) {
          const [claimed] = yield* store.claim({ now: past + 100, again: past + 1000, limit: 1, except: [] })
          owners.add(claimed!.projectId)
          yield* store.enqueue([firing(claimed!.projectId === busy.projectId ? busy : other, past + 100)])
        }
        assert.strictEqual(owners.size, 2)
        yield* claimOf(1000)
      }))
  })
}
