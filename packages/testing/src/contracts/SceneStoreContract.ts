/**
 * The laws of `SceneStore`, and of what other stores write for it.
 */
import {
  CommandStore,
  type DeviceCloud,
  type DeviceCommit,
  type Execution,
  keptExecutions,
  type NewExecution,
  PresenceStore,
  type ProductKey,
  type Project,
  type ProjectId,
  ProjectStore,
  type Scene,
  SceneId,
  SceneStore,
  type SceneTimer,
  ShadowDraft,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { epoch, insertDevice, insertProject, unique } from "./Samples.ts"

const newScene = ({ id }: Project, fields: Partial<Scene> = {}): Scene => ({
  sceneId: SceneId.make(unique("s")),
  projectId: id,
  name: unique("Scene "),
  desc: "Cools",
  status: "enable",
  triggers: [],
  conditions: [{ _tag: "TimeRange", start: 1, end: 2 }],
  actions: [],
  pausedUntil: null,
  revision: 1,
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

const trigger = (productKey: ProductKey): Scene["triggers"][number] => ({
  _tag: "Property",
  productKey,
  deviceName: "*",
  propertyId: "temperature",
  comparison: { type: ">", value: "30" }
})

const insert = Effect.fnUntraced(
  function*(project: Project, fields: Partial<Scene> = {}, timers: ReadonlyArray<SceneTimer> = []) {
    const scene = newScene(project, fields)
    assert.strictEqual(yield* (yield* SceneStore).insert(scene, timers), "inserted")
    return scene
  }
)

const firing = ({ projectId, sceneId }: Scene, at = epoch): NewExecution => ({
  executionId: unique("e"),
  sceneId,
  projectId,
  at,
  event: { _tag: "RunByHand", at },
  chain: [SceneId.make("before")]
})

const timer = ({ projectId, sceneId }: Scene, dueAt: number | null): SceneTimer => ({
  cronId: unique("c"),
  sceneId,
  projectId,
  cron: "0 * * * * *",
  dueAt
})

const all = { page: 1, pageSize: 100 }

/** Claims what is due of these scenes; what others have left is due as well. */
const claim = Effect.fnUntraced(function*(scenes: ReadonlyArray<Scene>, now: number, again = now + 1000) {
  const claimed = yield* (yield* SceneStore).claim({ now, again, limit: 1000, except: [] })
  return claimed.filter(({ sceneId }) => scenes.some((scene) => scene.sceneId === sceneId))
})

const ended = (execution: Execution, fields: Partial<Execution> = {}): Execution => ({
  ...execution,
  status: "succeeded",
  reason: "A trigger has fired",
  verdict: { fires: true, reason: "A trigger has fired", triggers: [], conditions: [] },
  dueAt: null,
  updatedAt: epoch + 5,
  ...fields
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(stores)(`SceneStore on ${name}`, (it) => {
    it.effect("a scene is stored, read, changed and removed", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const { product } = yield* insertDevice
        const scene = yield* insert(project, {
          triggers: [trigger(product.productKey), { _tag: "Cron", cronId: "c", cron: "* * * * *" }],
          actions: [{ _tag: "RunScene", sceneId: SceneId.make("other") }],
          pausedUntil: epoch + 1
        })
        const { projectId, sceneId } = scene
        assert.deepStrictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)), scene)
        assert.deepStrictEqual(yield* store.find([sceneId, SceneId.make("none")]), [scene])
        const changed: Scene = { ...scene, name: unique("New"), status: "disable", triggers: [], revision: 2 }
        assert.strictEqual(yield* store.update({ ...changed, revision: 3 }, []), "changed")
        assert.strictEqual(yield* store.update(changed, []), "updated")
        assert.strictEqual(yield* store.update(changed, []), "changed")
        assert.deepStrictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)), changed)
        yield* store.pause(sceneId, epoch + 60)
        assert.strictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)).pausedUntil, epoch + 60)
        const other = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.get(other.id, sceneId)))
        assert.isTrue(Option.isNone(yield* store.remove(other.id, sceneId)))
        assert.strictEqual(Option.getOrThrow(yield* store.remove(projectId, sceneId)).name, changed.name)
        assert.isTrue(Option.isNone(yield* store.remove(projectId, sceneId)))
      }))

    it.effect("names are unique in a project", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const [project, other] = [yield* insertProject, yield* insertProject]
        const { name } = yield* insert(project)
        const second = yield* insert(project)
        assert.strictEqual(yield* store.insert(newScene(project, { name }), []), "taken")
        assert.strictEqual(yield* store.insert(newScene(other, { name }), []), "inserted")
        assert.strictEqual(yield* store.update({ ...second, name, revision: 2 }, []), "taken")
        assert.strictEqual(
          yield* store.insert(newScene({ ...project, id: unique("p") as Project["id"] }), []),
          "no-project"
        )
      }))

    it.effect("lists scenes newest first, by what their name contains and by status", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const old = yield* insert(project, { name: "Heat 10% more" })
        const disabled = yield* insert(project, { status: "disable", createdAt: epoch + 1 })
        const newest = yield* insert(project, { name: "heat_off", createdAt: epoch + 1 })
        const list = (filter: Parameters<typeof store.list>[1]) =>
          Effect.map(store.list(project.id, filter, all), ({ items }) => items.map(({ sceneId }) => sceneId))
        assert.deepStrictEqual(yield* list({}), [newest.sceneId, disabled.sceneId, old.sceneId])
        assert.deepStrictEqual(yield* list({ name: "0%" }), [old.sceneId])
        assert.deepStrictEqual(yield* list({ name: "heat" }), [newest.sceneId])
        assert.deepStrictEqual(yield* list({ status: "disable" }), [disabled.sceneId])
        const page = yield* store.list(project.id, {}, { page: 2, pageSize: 2 })
        assert.deepStrictEqual([page.total, page.items.map(({ sceneId }) => sceneId)], [3, [old.sceneId]])
      }))

    it.effect("finds the enabled scenes that devices of a product fire", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const [a, b] = [(yield* insertDevice).product.productKey, (yield* insertDevice).product.productKey]
        const ofA = yield* insert(project, { triggers: [trigger(a), trigger(a)] })
        const ofBoth = yield* insert(project, { triggers: [trigger(b), trigger(a)] })
        yield* insert(project, { triggers: [trigger(a)], status: "disable" })
        const ids = (scenes: ReadonlyArray<Scene>) => scenes.map(({ sceneId }) => sceneId).toSorted()
        assert.deepStrictEqual(ids(yield* store.watching([a])), ids([ofA, ofBoth]))
        assert.deepStrictEqual(ids(yield* store.watching([b])), [ofBoth.sceneId])
        assert.deepStrictEqual(ids(yield* store.watching([a, b])), ids([ofA, ofBoth]))
        yield* store.update({ ...ofBoth, triggers: [trigger(b)], revision: 2 }, [])
        assert.deepStrictEqual(ids(yield* store.watching([a])), [ofA.sceneId])
      }))

    it.effect("an execution is claimed by one at a time, the longest due first, and again after its lease", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
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
        const store = yield* SceneStore
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
        const store = yield* SceneStore
        const scene = yield* insert(yield* insertProject)
        yield* store.enqueue([firing(scene), firing(scene)])
        const [first] = yield* claim([scene], epoch)
        const saved = ended(first!, {
          status: "running",
          outcomes: [{
            action: { _tag: "RunScene", sceneId: scene.sceneId },
            status: "pending",
            attempts: 2,
            nextAt: epoch + 70,
            at: epoch,
            detail: "Answered with 500: \u0000"
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
        const store = yield* SceneStore
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
        const store = yield* SceneStore
        const project = yield* insertProject
        const [scene, gone] = [yield* insert(project), newScene(project)]
        yield* store.enqueue([firing(scene), firing(gone)])
        assert.strictEqual((yield* store.executions(gone.sceneId, all)).total, 0)
        yield* store.remove(scene.projectId, scene.sceneId)
        assert.strictEqual((yield* store.executions(scene.sceneId, all)).total, 0)
        assert.deepStrictEqual(yield* claim([scene, gone], epoch + 1), [])
      }))

    it.effect("scenes, timers and keys go with their project", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const scene = newScene(project)
        yield* store.insert(scene, [timer(scene, epoch)])
        yield* store.enqueue([firing(scene)])
        yield* store.putWebhookKeys(project.id, null, { current: "k", createdAt: epoch, previous: null })
        assert.strictEqual(yield* (yield* ProjectStore).remove(project.id), "removed")
        assert.deepStrictEqual(yield* store.find([scene.sceneId]), [])
        assert.deepStrictEqual(yield* claim([scene], epoch + 1), [])
        assert.isTrue(Option.isNone(yield* store.webhookKeys(project.id)))
      }))

    it.effect("a timer fires once for all that ask, with its execution", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const scene = newScene(project)
        const [due, later, never] = [timer(scene, epoch), timer(scene, epoch + 100), timer(scene, null)]
        yield* store.insert(scene, [due, later, never])
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
        yield* store.update({ ...scene, revision: 2 }, [next])
        yield* tick(epoch + 300)
        assert.deepStrictEqual(seen, [due, later, next])
        // One that stays is neither lost nor comes twice because the scene is changed.
        const [kept, off] = [timer(scene, epoch + 400), timer(scene, epoch + 400)]
        yield* store.update({ ...scene, revision: 3 }, [kept, off])
        yield* store.update({ ...scene, revision: 4 }, [{ ...kept, dueAt: epoch + 500 }, { ...off, dueAt: null }])
        yield* tick(epoch + 400)
        assert.deepStrictEqual(seen.slice(3), [kept])
        yield* store.update({ ...scene, revision: 5 }, [kept, off].map((timer) => ({ ...timer, dueAt: epoch + 500 })))
        yield* tick(epoch + 499)
        assert.deepStrictEqual(seen.slice(4), [])
        yield* store.remove(scene.projectId, scene.sceneId)
      }))

    it.effect("keys are replaced only by who knows them", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const { id } = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.webhookKeys(id)))
        const first = { current: "a", createdAt: epoch, previous: null }
        assert.isTrue(yield* store.putWebhookKeys(id, null, first))
        assert.isFalse(yield* store.putWebhookKeys(id, null, first))
        const second = { current: "b", createdAt: epoch + 1, previous: { key: "a", until: epoch + 2 } }
        assert.isTrue(yield* store.putWebhookKeys(id, epoch, second))
        assert.isFalse(yield* store.putWebhookKeys(id, epoch, second))
        assert.deepStrictEqual(Option.getOrThrow(yield* store.webhookKeys(id)), second)
      }))

    it.effect("what a report fires is stored with it", () =>
      Effect.gen(function*() {
        const scene = yield* insert(yield* insertProject)
        const { device: { deviceId } } = yield* insertDevice
        const [withReport, withEvent] = [firing(scene), firing(scene)]
        const commit = (update: DeviceCommit<void>["update"]) =>
          UplinkStore.use((store) => store.commit({ devices: [{ deviceId, update }], commands: [] }))
        yield* commit((shadow) => {
          const draft = new ShadowDraft(shadow)
          draft.set("reported", "temperature", { value: 31, time: epoch })
          draft.accept(epoch)
          return [undefined, draft.finish(), { samples: [], events: [], reactions: [withReport] }]
        })
        yield* commit((shadow) => [undefined, shadow, {
          samples: [],
          events: [{ eventId: "alarm", time: epoch, value: {} }],
          reactions: [withEvent]
        }])
        assert.deepStrictEqual(
          (yield* claim([scene], epoch)).map(({ executionId }) => executionId),
          [withReport.executionId, withEvent.executionId]
        )
      }))

    it.effect("what a change of status fires is stored with it", () =>
      Effect.gen(function*() {
        const presence = yield* PresenceStore
        const scene = yield* insert(yield* insertProject)
        const { device: { deviceId } } = yield* insertDevice
        const nodeId = unique("node")
        const reactTo = <A>(changes: ReadonlyArray<A>) => changes.map(() => firing(scene))
        const online = { _tag: "Online", deviceId, connectionId: "c", nodeId, ip: "127.0.0.1", at: epoch } as const
        const deviceIds = [deviceId]
        yield* presence.record([online], reactTo)
        yield* presence.markOffline({ deviceIds, lapse: { _tag: "NodeStops", nodeId }, at: epoch, reactTo })
        yield* presence.markSeen([{ deviceId, ip: "127.0.0.1", at: epoch, until: epoch + 1 }], reactTo)
        yield* presence.markOffline({
          deviceIds,
          lapse: { _tag: "SeenUntil", now: epoch + 1 },
          at: epoch + 1,
          reactTo
        })
        assert.strictEqual((yield* claim([scene], epoch)).length, 4)
      }))

    it.effect("a call with an origin is one command, however often it is called", () =>
      Effect.gen(function*() {
        const commands = yield* CommandStore
        const { device: { deviceId, projectId } } = yield* insertDevice
        const item = (origin: string | undefined, fan: number) => ({
          command: {
            projectId,
            deviceId,
            serviceId: null,
            userTopic: null,
            params: { fan },
            createdAt: epoch,
            expiresAt: epoch + 1000,
            state: "queued" as const,
            origin
          }
        })
        const [first] = yield* commands.enqueue([item("a", 1)])
        const results = yield* commands.enqueue([item(undefined, 2), item("a", 3), item("b", 4), item(undefined, 5)])
        assert.deepStrictEqual(results[1], first)
        assert.deepStrictEqual(
          results.map((result) => typeof result === "object" ? result.params["fan"] : result),
          [2, 1, 4, 5]
        )
        assert.strictEqual((yield* commands.list(deviceId, all)).total, 4)
      }))
  })
}
