/**
 * The laws of `SceneStore`, and of what other stores write for scenes.
 */
import {
  CommandStore,
  type DeviceCloud,
  type DeviceCommit,
  type Enqueued,
  PresenceStore,
  type Project,
  type Scene,
  SceneId,
  SceneStore,
  ShadowDraft,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertProject, newCommand, reported, unique } from "./Samples.ts"
import { all, claim, firing, insert, newScene, trigger } from "./SceneSamples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores))(`SceneStore on ${name}`, (it) => {
    it.effect("a scene is stored, read, changed and removed", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const { product } = yield* insertDevice
        const scene = yield* insert(project, {
          triggers: [trigger(product.productKey), { _tag: "Cron", cronId: "c", cron: "* * * * *" }],
          conditions: [{ _tag: "Custom", uri: "condition/acme/on-duty", params: { team: "night", also: [1, null] } }],
          actions: [
            { _tag: "RunScene", sceneId: SceneId.make("other") },
            { _tag: "Custom", uri: "action/acme/page", params: { text: "Too hot: \u0000", deep: { a: [] } } }
          ],
          pausedUntil: epoch + 1
        })
        const { projectId, sceneId } = scene
        assert.deepStrictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)), scene)
        assert.deepStrictEqual(yield* store.find([SceneId.make("none"), sceneId]), [scene])
        assert.deepStrictEqual(yield* store.list(projectId, {}, all), { items: [scene], total: 1 })
        assert.deepStrictEqual(yield* store.watching([product.productKey]), [scene])
        const changed: Scene = { ...scene, name: unique("New"), status: "disable", triggers: [], revision: 2 }
        assert.strictEqual(yield* store.update({ ...changed, revision: 3 }, []), "changed")
        assert.strictEqual(yield* store.update(changed, []), "updated")
        assert.strictEqual(yield* store.update(changed, []), "changed")
        assert.deepStrictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)), changed)
        const siblings = [yield* insert(project), yield* insert(yield* insertProject)]
        yield* store.pause(sceneId, epoch + 60)
        assert.strictEqual(Option.getOrThrow(yield* store.get(projectId, sceneId)).pausedUntil, epoch + 60)
        const other = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.get(other.id, sceneId)))
        assert.isTrue(Option.isNone(yield* store.remove(other.id, sceneId)))
        const removed = yield* store.remove(projectId, sceneId)
        assert.deepStrictEqual(removed, Option.some({ ...changed, pausedUntil: epoch + 60 }))
        assert.isTrue(Option.isNone(yield* store.remove(projectId, sceneId)))
        assert.sameDeepMembers([...yield* store.find(siblings.map(({ sceneId }) => sceneId))], siblings)
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
        // A name is free when its scene has another one, or is gone.
        const renamed = { ...second, name: unique("Renamed"), revision: 2 }
        assert.strictEqual(yield* store.update(renamed, []), "updated")
        yield* insert(project, { name: second.name })
        yield* store.remove(project.id, second.sceneId)
        yield* insert(project, { name: renamed.name })
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
        yield* insert(yield* insertProject, { name: "Heat 10% more", status: "disable" })
        const list = (filter: Parameters<typeof store.list>[1]) =>
          Effect.map(store.list(project.id, filter, all), ({ items, total }) => {
            assert.strictEqual(total, items.length)
            return items
          })
        assert.deepStrictEqual(yield* list({}), [newest, disabled, old])
        assert.deepStrictEqual(yield* list({ name: "0%" }), [old])
        assert.deepStrictEqual(yield* list({ name: "heat" }), [newest])
        assert.deepStrictEqual(yield* list({ status: "disable" }), [disabled])
        assert.deepStrictEqual(yield* store.list(project.id, {}, { page: 2, pageSize: 2 }), { items: [old], total: 3 })
      }))

    it.effect("finds the enabled scenes that devices of a product fire", () =>
      Effect.gen(function*() {
        const store = yield* SceneStore
        const project = yield* insertProject
        const [a, b] = [(yield* insertDevice).product.productKey, (yield* insertDevice).product.productKey]
        const ofA = yield* insert(project, { triggers: [trigger(a), trigger(a)] })
        const ofBoth = yield* insert(project, { triggers: [trigger(b), trigger(a)] })
        yield* insert(project, { triggers: [trigger(a)], status: "disable" })
        const watching = (...productKeys: Parameters<typeof store.watching>[0]) =>
          Effect.map(store.watching(productKeys), (scenes) => [...scenes])
        assert.sameDeepMembers(yield* watching(a), [ofA, ofBoth])
        assert.sameDeepMembers(yield* watching(b), [ofBoth])
        const ofB = yield* insert(project, { triggers: [trigger(b)] })
        assert.sameDeepMembers(yield* watching(a, b), [ofA, ofBoth, ofB])
        const changed: Scene = { ...ofBoth, triggers: [trigger(b)], revision: 2 }
        yield* store.update(changed, [])
        assert.sameDeepMembers(yield* watching(a), [ofA])
        assert.sameDeepMembers(yield* watching(b), [changed, ofB])
      }))

    it.effect("what a report fires is stored with it", () =>
      Effect.gen(function*() {
        const scene = yield* insert(yield* insertProject)
        const { device } = yield* insertDevice
        const { deviceId } = device
        const [withReport, withEvent, another] = [firing(scene), firing(scene), firing(scene)]
        const commit = (update: DeviceCommit<void>["update"]) =>
          UplinkStore.use((store) => store.commit({ devices: [{ deviceId, update }], commands: [] }))
        yield* commit((shadow) => {
          const draft = new ShadowDraft(shadow)
          draft.set("reported", "temperature", { value: 31, time: epoch })
          draft.accept(epoch)
          return [undefined, draft.finish(), { happened: [], reactions: [withReport] }]
        })
        yield* commit((shadow) => [undefined, shadow, {
          happened: reported(device, { events: [{ eventId: "alarm", time: epoch, value: {} }] }),
          reactions: [withEvent, another]
        }])
        assert.sameMembers(
          (yield* claim([scene], epoch)).map(({ executionId }) => executionId),
          [withReport, withEvent, another].map(({ executionId }) => executionId)
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
        yield* presence.markSeen([{ deviceId, ip: "127.0.0.1", at: epoch, lasts: 1000 }], reactTo)
        yield* presence.markOffline({
          deviceIds,
          lapse: { _tag: "NotConnected", deviceIds },
          at: epoch + 1,
          reactTo
        })
        assert.strictEqual((yield* claim([scene], epoch)).length, 4)
      }))

    it.effect("a call with an origin is one command, however often it is called", () =>
      Effect.gen(function*() {
        const commands = yield* CommandStore
        const { device } = yield* insertDevice
        const item = (origin: string | undefined, fan: number) => ({
          command: newCommand(device, { params: { fan }, origin })
        })
        const [first] = yield* commands.enqueue([item("a", 1)])
        const results = yield* commands.enqueue([item(undefined, 2), item("a", 3), item("b", 4), item(undefined, 5)])
        assert.isObject(first)
        assert.deepInclude(results[1], { command: (first as Enqueued).command, previous: undefined })
        assert.deepStrictEqual(
          results.map((result) => typeof result === "object" ? result.command.params["fan"] : result),
          [2, 1, 4, 5]
        )
        assert.strictEqual((yield* commands.list(device.deviceId, all)).total, 4)
      }))
  })
}
