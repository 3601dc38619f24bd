/**
 * The laws of `ExecutionStore`.
 */
import {
  type Device,
  type DeviceCloud,
  DeviceStore,
  type Execution,
  ExecutionStore,
  keptExecutions,
  type NewExecution,
  pendingExecution,
  PresenceStore,
  ProductKey,
  type ProjectId,
  ProjectStore,
  type Scene,
  SceneId,
  SceneStore,
  type SceneTimer
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertProject, unique } from "./Samples.ts"
import { all, claim, ended, firing, insert, newScene, timer, trigger } from "./SceneSamples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores))(`ExecutionStore on ${name}`, (it) => {
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
        const [firstAgain, other] = again.toSorted((a, b) => a.at - b.at)
        assert.deepStrictEqual(yield* store.save([ended(first), ended(other!)], epoch), [false, true])
        assert.deepStrictEqual(yield* store.save([ended(firstAgain!)], epoch), [true])
        assert.deepStrictEqual(yield* claim([scene], epoch + 900_000), [])
        // One that has ended does not begin again: whoever stores it once more has not heard that it is stored.
        yield* store.enqueue([early])
        assert.deepStrictEqual(yield* claim([scene], epoch + 900_000), [])
      }))

    it.effect("no more executions are claimed than are returned, the longest due first", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        // Due before those of all other tests.
        const past = epoch - 3_000_000
        const scene = yield* insert(yield* insertProject)
        yield* store.enqueue([0, 2, 1].map((before) => firing(scene, past - before)))
        const claimTwo = store.claim({ now: past, again: past + 1000, limit: 2, except: [] })
        const claimed = [yield* claimTwo, yield* claimTwo, yield* claimTwo]
        assert.deepStrictEqual(
          claimed.map((some) => some.map(({ at }) => at - past).toSorted((a, b) => a - b)),
          [[-2, -1], [0], []]
        )
        // One that was never claimed comes before those that have become due again after it.
        yield* store.enqueue([firing(scene, past + 500)])
        const [next] = yield* store.claim({ now: past + 2000, again: past + 3000, limit: 1, except: [] })
        assert.strictEqual(next!.at, past + 500)
        yield* store.save([...claimed.flat(), next!].map((execution) => ended(execution)), epoch)
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
            triggers: [{
              trigger: trigger(ProductKey.make("p")),
              verdict: "holds",
              value: { celsius: 31 },
              previous: null,
              source: "report",
              time: epoch,
              reason: "temperature is above 30"
            }],
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
        // Whoever goes on with it has all of it: an action whose outcome is lost happens twice.
        const [again] = yield* claim([scene], epoch + 70, epoch + 90)
        assert.deepStrictEqual(again, { ...saved, dueAt: epoch + 90, revision: saved.revision + 1 })
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
        const count = (since: number, until = epoch + 100) =>
          Effect.map(store.countFired([scene.sceneId], since, until), (counts) => counts.get(scene.sceneId) ?? 0)
        assert.deepStrictEqual([yield* count(epoch), yield* count(epoch + 10), yield* count(epoch + 11)], [11, 6, 0])
        assert.deepStrictEqual([yield* count(epoch, epoch + 9), yield* count(epoch, epoch + 10)], [5, 11])
        yield* save(keptExecutions, epoch + 20, { verdict })
        assert.deepStrictEqual([yield* count(epoch), yield* count(epoch + 10)], [6, 6])
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, keptExecutions)
      }))

    it.effect("removes executions that ended long ago, a part at a time, and no other", () =>
      Effect.gen(function*() {
        const store = yield* ExecutionStore
        const scene = yield* insert(yield* insertProject)
        // This time is earlier than the executions of other tests.
        const old = epoch - 2_000_000
        yield* store.enqueue(Array.from({ length: 5 }, () => firing(scene, old)))
        const [waiting, later, ...others] = yield* claim([scene], old)
        yield* store.save([
          { ...waiting!, updatedAt: old + 1 },
          ended(later!, { updatedAt: old + 2 }),
          ...others.map((execution) => ended(execution, { updatedAt: old + 1 }))
        ], old)
        const prune = (before: number) => store.prune({ before, limit: 2 })
        assert.deepStrictEqual([yield* prune(old + 1), yield* prune(old + 2), yield* prune(old + 2)], [0, 2, 1])
        assert.deepStrictEqual(
          new Set((yield* store.executions(scene.sceneId, all)).items.map(({ executionId }) => executionId)),
          new Set([waiting!.executionId, later!.executionId])
        )
        assert.strictEqual((yield* store.countFired([scene.sceneId], 0, epoch)).get(scene.sceneId), 1)
      }))

    it.effect("executions are stored only while their scene exists, and go with it", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const project = yield* insertProject
        const [scene, sibling, gone] = [yield* insert(project), yield* insert(project), newScene(project)]
        yield* store.enqueue([firing(scene), firing(sibling), firing(gone)])
        assert.strictEqual((yield* store.executions(gone.sceneId, all)).total, 0)
        yield* scenes.remove((yield* insertProject).id, scene.sceneId)
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 1)
        yield* scenes.remove(scene.projectId, scene.sceneId)
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 0)
        assert.deepStrictEqual(yield* claim([scene, gone], epoch + 1), [])
        assert.strictEqual((yield* store.executions(sibling.sceneId, all)).total, 1)
      }))

    it.effect("scenes and timers go with their project", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const project = yield* insertProject
        const scene = newScene(project)
        yield* scenes.insert(scene, [timer(scene, epoch)])
        yield* store.enqueue([firing(scene)])
        assert.strictEqual(yield* (yield* ProjectStore).remove(project.id), "removed")
        assert.deepStrictEqual(yield* scenes.find([scene.sceneId]), [])
        assert.deepStrictEqual(yield* claim([scene], epoch + 1), [])
      }))

    it.effect("a timer fires once for all that ask, with its execution", () =>
      Effect.gen(function*() {
        const scenes = yield* SceneStore
        const store = yield* ExecutionStore
        const project = yield* insertProject
        const scene = newScene(project)
        const [due, later, never] = [timer(scene, epoch), timer(scene, epoch + 100), timer(scene, null)]
        const sibling = newScene(project)
        yield* scenes.insert(sibling, [timer(sibling, epoch + 200)])
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
        assert.strictEqual((yield* store.executions(sibling.sceneId, all)).total, 1)
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

    it.effect("takes no more timers at once than it is asked for, the longest due first, and tells how many", () =>
      Effect.gen(function*() {
        const [scenes, store] = [yield* SceneStore, yield* ExecutionStore]
        // Due before those of all other tests.
        const past = epoch - 1_000_000
        const scene = newScene(yield* insertProject)
        yield* scenes.insert(scene, [timer(scene, past), timer(scene, past - 2), timer(scene, past - 1)])
        const taken: Array<number> = []
        const tick = store.tick({
          now: past,
          limit: 2,
          step: ({ dueAt }) => {
            taken.push(dueAt - past)
            return { dueAt: null, execution: firing(scene, past) }
          }
        })
        assert.deepStrictEqual([yield* tick, yield* tick, yield* tick], [2, 1, 0])
        assert.deepStrictEqual([taken.slice(0, 2).toSorted((a, b) => a - b), taken.slice(2)], [[-2, -1], [0]])
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 3)
        yield* scenes.remove(scene.projectId, scene.sceneId)
      }))

    it.effect("timers get an earlier time, never a later one or none", () =>
      Effect.gen(function*() {
        const [scenes, store] = [yield* SceneStore, yield* ExecutionStore]
        const scene = newScene(yield* insertProject)
        const dated = [timer(scene, epoch + 900), timer(scene, epoch + 900), timer(scene, epoch + 900)] as const
        const [hastened, late, kept] = dated
        const next = new Map([[hastened.cronId, epoch + 500], [late.cronId, epoch + 950]])
        yield* scenes.insert(scene, [...dated, timer(scene, null)])
        const seen: Array<SceneTimer> = []
        for (let after: string | undefined = ""; after !== undefined;) {
          const looked = new Set<string>()
          after = yield* store.hasten({
            after,
            limit: 2,
            step: (timer) => {
              looked.add(timer.cronId)
              if (timer.sceneId === scene.sceneId) seen.push(timer)
              return next.get(timer.cronId) ?? null
            }
          })
          assert.isAtMost(looked.size, 2)
        }
        assert.sameDeepMembers(seen, [...dated])
        const taken: Array<string> = []
        const tick = (now: number) =>
          store.tick({
            now,
            limit: 1000,
            step: ({ cronId, sceneId }) => {
              if (sceneId === scene.sceneId) taken.push(cronId)
              return { dueAt: null }
            }
          })
        yield* tick(epoch + 500)
        assert.deepStrictEqual(taken, [hastened.cronId])
        yield* tick(epoch + 900)
        assert.sameMembers(taken, [hastened.cronId, late.cronId, kept.cronId])
        yield* scenes.remove(scene.projectId, scene.sceneId)
      }))

    it.effect("an execution that waits for a status to last is stored if the status has lasted", () =>
      Effect.gen(function*() {
        const [store, presence] = [yield* ExecutionStore, yield* PresenceStore]
        const scene = yield* insert(yield* insertProject)
        const [other, twice] = [yield* insert(yield* insertProject), yield* insert(yield* insertProject)]
        const devices = yield* Effect.replicateEffect(insertDevice, 4)
        const [steady, flapping, disabled, unwanted] = devices.map(({ device }) => device) as [
          Device,
          Device,
          Device,
          Device
        ]
        const waiting = ({ projectId, sceneId }: Scene, device: Device, since: number, minutes = 10): NewExecution => {
          const at = since + minutes * 60_000
          const { deviceId, deviceName, productKey } = device
          const event = {
            _tag: "StatusLasted",
            device: { deviceId, deviceName, productKey },
            at,
            since,
            minutes,
            status: "offline"
          } as const
          return { executionId: unique("e"), sceneId, projectId, at, event, chain: [] }
        }
        const go = (
          device: Device,
          to: "Online" | "Offline",
          at: number,
          reactions: ReadonlyArray<NewExecution> = []
        ) =>
          presence.record(
            [{ _tag: to, deviceId: device.deviceId, connectionId: "c", nodeId: "node", ip: "192.0.2.7", at }],
            () => reactions
          )
        for (const device of [steady, flapping, disabled, unwanted]) yield* go(device, "Online", epoch)
        const lasting = [waiting(scene, steady, epoch + 1), waiting(scene, steady, epoch + 1, 20)]
        yield* go(steady, "Offline", epoch + 1, [
          ...lasting,
          waiting(twice, steady, epoch + 1),
          waiting(twice, steady, epoch + 1, 20),
          waiting({ ...other, sceneId: SceneId.make("gone") }, steady, epoch + 1)
        ])
        // Nothing takes the place of the second one when the device is offline again.
        yield* go(flapping, "Offline", epoch + 1, [
          waiting(scene, flapping, epoch + 1),
          waiting(other, flapping, epoch + 1)
        ])
        yield* go(flapping, "Online", epoch + 2)
        const again = waiting(scene, flapping, epoch + 60_000)
        yield* go(flapping, "Offline", epoch + 60_000, [again])
        yield* go(unwanted, "Offline", epoch + 1, [waiting(scene, unwanted, epoch + 1)])
        yield* go(disabled, "Offline", epoch + 1, [waiting(scene, disabled, epoch + 1)])
        yield* (yield* DeviceStore).update(disabled.projectId, disabled.deviceId, { enabled: false, updatedAt: epoch })
        const stored = (now: number) =>
          Effect.gen(function*() {
            const admit = ({ event }: NewExecution) =>
              event._tag === "StatusLasted" && event.device.deviceId !== unwanted.deviceId
            yield* Effect.all(Array.from({ length: 2 }, () => store.tickLasting({ now, limit: 100, admit })), {
              concurrency: "unbounded"
            })
            return yield* claim([scene], now, now + 10_000_000)
          })
        assert.deepStrictEqual(yield* stored(epoch + 600_000), [])
        const claimed = yield* stored(epoch + 600_001)
        assert.deepStrictEqual(claimed, [{ ...pendingExecution(lasting[0]!), dueAt: epoch + 10_600_001, revision: 1 }])
        assert.strictEqual(yield* store.tickLasting({ now: epoch + 600_001, limit: 100, admit: () => true }), 0)
        assert.strictEqual((yield* store.executions(twice.sceneId, all)).total, 1)
        const ids = (yield* stored(epoch + 660_000)).map(({ executionId }) => executionId)
        assert.deepStrictEqual(ids, [again.executionId])
        assert.deepStrictEqual((yield* store.executions(other.sceneId, all)).items, [])
        const [execution] = (yield* store.executions(scene.sceneId, all)).items
        assert.deepInclude(execution, again)
        // The scene is gone when the time comes.
        yield* (yield* SceneStore).remove(scene.projectId, scene.sceneId)
        assert.deepStrictEqual(yield* stored(epoch + 1_200_001), [])
        // Another one waited for both times.
        assert.strictEqual((yield* store.executions(twice.sceneId, all)).total, 2)
      }))

    it.effect("takes no more executions that have waited at once than it is asked for, and tells how many", () =>
      Effect.gen(function*() {
        const [store, presence] = [yield* ExecutionStore, yield* PresenceStore]
        const scene = yield* insert(yield* insertProject)
        // Due before those of all other tests.
        const since = epoch - 10_000_000
        const at = since + 60_000
        for (const { device } of yield* Effect.replicateEffect(insertDevice, 4)) {
          const { deviceId, deviceName, productKey } = device
          const change = { deviceId, connectionId: "c", nodeId: "node", ip: "192.0.2.7" }
          yield* presence.record([{ ...change, _tag: "Online", at: since - 1 }], () => [])
          const event = {
            _tag: "StatusLasted",
            device: { deviceId, deviceName, productKey },
            at,
            since,
            minutes: 1,
            status: "offline"
          } as const
          yield* presence.record(
            [{ ...change, _tag: "Offline", at: since }],
            () => [{
              executionId: unique("e"),
              sceneId: scene.sceneId,
              projectId: scene.projectId,
              at,
              event,
              chain: []
            }]
          )
        }
        const tick = (isWanted: boolean, limit: number) => store.tickLasting({ now: at, limit, admit: () => isWanted })
        // What is not admitted is taken as well.
        assert.deepStrictEqual(
          [yield* tick(false, 1), yield* tick(true, 2), yield* tick(true, 2), yield* tick(true, 2)],
          [1, 2, 1, 0]
        )
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 3)
        yield* (yield* SceneStore).remove(scene.projectId, scene.sceneId)
      }))
  })
}
