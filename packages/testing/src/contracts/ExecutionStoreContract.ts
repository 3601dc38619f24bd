/**
 * The laws of `ExecutionStore` and `WebhookKeyStore`.
 */
import {
  type DeviceCloud,
  type Execution,
  ExecutionStore,
  keptExecutions,
  type ProjectId,
  ProjectStore,
  SceneStore,
  type SceneTimer,
  WebhookKeyStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { epoch, insertProject } from "./Samples.ts"
import { all, claim, ended, firing, insert, newScene, timer } from "./SceneSamples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(stores)(`ExecutionStore on ${name}`, (it) => {
    it.effect("an execution is claimed by one at a time, the longest due first, and again after its lease", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const [late, early, future] = [
          firing(scene, epoch + 10),
          firing(scene, epoch),
          firing(scene, epoch + 1_000_000)
        ]
        yield* store.enqueue([late, early, future, late])
        const claims = yield* Effect.all([claim([scene], epoch + 20), claim([scene], epoch + 20)], {
          concurrency: "unbounded"
        })
        const claimed = claims.flat()
        assert.deepStrictEqual(
          claimed.map(({ executionId }) => executionId).toSorted(),
          [early.executionId, late.executionId].toSorted()
        )
        const first = claimed.find(({ executionId }) => executionId === early.executionId)!
        assert.deepInclude(first, { ...early, status: "pending", verdict: null, outcomes: [], revision: 1 })
        assert.deepStrictEqual(yield* claim([scene], epoch + 900), [])
        const again = yield* claim([scene], epoch + 5000)
        assert.deepStrictEqual(again.map(({ revision }) => revision), [2, 2])
        // Who was too slow writes nothing any more.
        assert.deepStrictEqual(yield* store.save([ended(first)], epoch), [false])
        assert.deepStrictEqual(yield* store.save(again.map((execution) => ended(execution)), epoch), [true, true])
        assert.deepStrictEqual(yield* claim([scene], epoch + 900_000), [])
      }))

    it.effect("executions of other projects are claimed past those of one that has its share", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const [busy, other] = [yield* insert(yield* insertProject), yield* insert(yield* insertProject)]
        yield* store.enqueue([firing(busy, epoch), firing(other, epoch + 1), firing(busy, epoch + 2)])
        const claimOf = (except: ReadonlyArray<ProjectId>) =>
          Effect.map(
            store.claim({ now: epoch + 5, again: epoch + 10, limit: 1000, except }),
            (claimed) =>
              claimed.flatMap(({ sceneId }) => sceneId === busy.sceneId || sceneId === other.sceneId ? [sceneId] : [])
          )
        assert.deepStrictEqual(yield* claimOf([busy.projectId, other.projectId]), [])
        assert.deepStrictEqual(yield* claimOf([busy.projectId]), [other.sceneId])
        assert.deepStrictEqual(yield* claimOf([]), [busy.sceneId, busy.sceneId])
      }))

    it.effect("an execution is read as it was saved, newest first", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        yield* store.enqueue([firing(scene), firing(scene)])
        const [first] = yield* claim([scene], epoch)
        const saved = ended(first!, {
          status: "running",
          verdict: {
            fires: true,
            reason: "A trigger has fired",
            triggers: [],
            conditions: [{
              condition: { _tag: "Custom", uri: "condition/acme/on-duty", params: { team: "night" } },
              verdict: "holds",
              value: { person: "Kim" },
              source: "roster",
              time: epoch,
              reason: "Kim is on duty"
            }]
          },
          outcomes: [{
            action: { _tag: "RunScene", sceneId: scene.sceneId },
            status: "pending",
            attempts: 2,
            nextAt: epoch + 70,
            at: epoch,
            detail: "Answered with 500: \u0000"
          }, {
            action: { _tag: "Custom", uri: "action/acme/page", params: { to: ["Kim", null], urgent: true } },
            status: "succeeded",
            attempts: 1,
            nextAt: null,
            at: epoch,
            detail: "Paged Kim"
          }],
          dueAt: epoch + 70
        })
        assert.deepStrictEqual(yield* store.save([saved], epoch), [true])
        const { items, total } = yield* store.executions(scene.sceneId, all)
        assert.strictEqual(total, 2)
        assert.deepStrictEqual(items.find(({ executionId }) => executionId === saved.executionId), saved)
        assert.strictEqual((yield* store.executions(scene.sceneId, { page: 2, pageSize: 1 })).items.length, 1)
      }))

    it.effect("counts what has fired, and keeps the latest executions and those that count", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        const verdict = { fires: false, reason: "", triggers: [], conditions: [] }
        const save = Effect.fnUntraced(function*(count: number, at: number, fields: Partial<Execution>) {
          yield* store.enqueue(Array.from({ length: count }, () => firing(scene, at)))
          const claimed = yield* claim([scene], at)
          yield* store.save(claimed.map((execution) => ended(execution, fields)), epoch + 10)
        })
        yield* save(5, epoch, {})
        yield* save(6, epoch + 10, {})
        yield* save(7, epoch + 10, { verdict })
        const count = (since: number) =>
          Effect.map(store.countFired([scene.sceneId], since), (counts) => counts.get(scene.sceneId) ?? 0)
        assert.deepStrictEqual([yield* count(epoch), yield* count(epoch + 10), yield* count(epoch + 11)], [11, 6, 0])
        yield* save(keptExecutions, epoch + 20, { verdict })
        assert.deepStrictEqual([yield* count(epoch), yield* count(epoch + 10)], [6, 6])
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, keptExecutions)
      }))

    it.effect("executions are stored only while their scene exists, and go with it", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const project = yield* insertProject
        const [scene, gone] = [yield* insert(project), newScene(project)]
        yield* store.enqueue([firing(scene), firing(gone)])
        assert.strictEqual((yield* store.executions(gone.sceneId, all)).total, 0)
        yield* scenes.remove(scene.projectId, scene.sceneId)
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 0)
        assert.deepStrictEqual(yield* claim([scene, gone], epoch + 1), [])
      }))

    it.effect("scenes, timers and keys go with their project", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const keys = yield* WebhookKeyStore
        const project = yield* insertProject
        const scene = newScene(project)
        yield* scenes.insert(scene, [timer(scene, epoch)])
        yield* store.enqueue([firing(scene)])
        yield* keys.put(project.id, null, { current: "k", createdAt: epoch, previous: null })
        assert.strictEqual(yield* (yield* ProjectStore).remove(project.id), "removed")
        assert.deepStrictEqual(yield* scenes.find([scene.sceneId]), [])
        assert.deepStrictEqual(yield* claim([scene], epoch + 1), [])
        assert.isTrue(Option.isNone(yield* keys.get(project.id)))
      }))

    it.effect("a timer fires once for all that ask, with its execution", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const project = yield* insertProject
        const scene = newScene(project)
        const [due, later, never] = [timer(scene, epoch), timer(scene, epoch + 100), timer(scene, null)]
        yield* scenes.insert(scene, [due, later, never])
        const seen: Array<SceneTimer> = []
        const tick = (now: number) =>
          store.tick({
            now,
            limit: 1000,
            step: (timer) => {
              if (timer.sceneId === scene.sceneId) seen.push(timer)
              return { dueAt: null, execution: { ...firing(scene, now), sceneId: timer.sceneId } }
            }
          })
        yield* Effect.all([tick(epoch + 1), tick(epoch + 1)], { concurrency: "unbounded" })
        assert.deepStrictEqual(seen, [due])
        yield* tick(epoch + 100)
        assert.deepStrictEqual(seen, [due, later])
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 2)
        // New timers take the place of the old ones.
        const next = timer(scene, epoch + 200)
        yield* scenes.update({ ...scene, revision: 2 }, [next])
        yield* tick(epoch + 300)
        assert.deepStrictEqual(seen, [due, later, next])
        // One that stays is neither lost nor comes twice because the scene is changed.
        const [kept, off] = [timer(scene, epoch + 400), timer(scene, epoch + 400)]
        yield* scenes.update({ ...scene, revision: 3 }, [kept, off])
        yield* scenes.update({ ...scene, revision: 4 }, [{ ...kept, dueAt: epoch + 500 }, { ...off, dueAt: null }])
        yield* tick(epoch + 400)
        assert.deepStrictEqual(seen.slice(3), [kept])
        yield* scenes.update({ ...scene, revision: 5 }, [kept, off].map((timer) => ({ ...timer, dueAt: epoch + 500 })))
        yield* tick(epoch + 499)
        assert.deepStrictEqual(seen.slice(4), [])
        yield* scenes.remove(scene.projectId, scene.sceneId)
      }))

    it.effect("keys are replaced only by who knows them", () =>
      Effect.gen(function*() {
        const keys = yield* WebhookKeyStore
        const { id } = yield* insertProject
        assert.isTrue(Option.isNone(yield* keys.get(id)))
        const first = { current: "a", createdAt: epoch, previous: null }
        assert.isTrue(yield* keys.put(id, null, first))
        assert.isFalse(yield* keys.put(id, null, first))
        const second = { current: "b", createdAt: epoch + 1, previous: { key: "a", until: epoch + 2 } }
        assert.isTrue(yield* keys.put(id, epoch, second))
        assert.isFalse(yield* keys.put(id, epoch, second))
        assert.deepStrictEqual(Option.getOrThrow(yield* keys.get(id)), second)
      }))
  })
}
