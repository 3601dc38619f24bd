import {
  defaultProjectId,
  DeviceCloud,
  type Execution,
  ExecutionStore,
  type SceneId,
  Scenes,
  type TriggerDraft
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, SimulatedDevice, TestKeyRing } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { type Context, Effect, Layer, type Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

/** A cloud of its own on the database, as on another machine. */
const cloudOn = (url: Redacted.Redacted) =>
  Layer.build(
    Layer.fresh(
      DeviceCloud.layer.pipe(
        Layer.provideMerge(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))),
        Layer.provideMerge(PlatformNode.layer)
      )
    )
  )

const createDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)

const executionsOf = (sceneId: SceneId) =>
  Effect.flatMap(
    Scenes,
    (scenes) =>
      Effect.map(scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 100 }), ({ items }) => items)
  )

/** Until there are executions that are so. */
const executionsWhen = (sceneId: SceneId, wanted: (executions: ReadonlyArray<Execution>) => boolean) =>
  eventually(executionsOf(sceneId), { until: wanted })

it.live("a scene that one node changes counts on the other, and each of its times once", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const [first, second] = [yield* cloudOn(url), yield* cloudOn(url)]
    const on = <A, E, R>(
      node: Context.Context<DeviceCloud.DeviceCloud>,
      use: Effect.Effect<A, E, R>
    ) => Effect.provide(use, node)
    const device = yield* on(first, createDevice)
    const trigger: TriggerDraft = {
      URI: "trigger/device/property",
      params: { product_key: device.productKey, device_name: "*", property_id: "on" }
    }
    const connected = yield* Effect.provide(SimulatedDevice.connect(device), second)
    // The scenes of the product are known there before there is one.
    let value = 0
    const report = Effect.suspend(() => connected.postProperties({ on: ++value }))
    yield* report
    const draft = { name: "On", status: "enable" as const, triggers: [trigger] }
    const { scene: { sceneId } } = yield* on(
      first,
      Effect.flatMap(Scenes, (scenes) => scenes.create(defaultProjectId, draft))
    )
    // A node hears the others some time after its start.
    yield* eventually(Effect.andThen(report, on(second, executionsOf(sceneId))), {
      until: (executions) => executions.length > 0,
      interval: "20 millis"
    })
    yield* on(first, Effect.flatMap(Scenes, (scenes) => scenes.setStatus(defaultProjectId, sceneId, "disable")))
    const isStored = ({ event, status }: Execution) =>
      event._tag === "PropertiesChanged" && event.properties["on"]!.value === value && status !== "skipped"
    yield* eventually(Effect.andThen(report, on(second, executionsOf(sceneId))), {
      until: (executions) => !executions.some(isStored),
      interval: "20 millis"
    })

    // Both nodes look at each timer, and one of them fires it.
    const timed = yield* on(
      first,
      Effect.flatMap(Scenes, (scenes) =>
        scenes.create(defaultProjectId, {
          name: "Timer",
          status: "enable",
          triggers: [{ URI: "trigger/cron", params: { cron: "* * * * * *" } }]
        }))
    )
    const executions = yield* on(
      second,
      executionsWhen(timed.scene.sceneId, (executions) =>
        executions.filter(({ status }) => status === "succeeded").length >= 3)
    )
    const times = executions.map(({ event }) =>
      event.at
    )
    assert.strictEqual(new Set(times).size, times.length)
    yield* on(first, Effect.flatMap(Scenes, (scenes) => scenes.remove(defaultProjectId, timed.scene.sceneId)))
  }).pipe(Effect.scoped))

it.live("many nodes claim executions at the same time, each of them once", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const stores = yield* Effect.all(
      Array.from({ length: 3 }, () =>
        Layer.build(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))))
    )
    const cloud = yield* cloudOn(url)
    const { scene } = yield* Effect.provide(
      Effect.flatMap(Scenes, (scenes) =>
        scenes.create(defaultProjectId, { name: "Any", status: "enable" })),
      cloud
    )
    const at = Date.UTC(2100, 0, 1)
    const executions = Array.from({ length: 300 }, (_, i) => ({
      executionId: `execution-${i}`,
      sceneId: scene.sceneId,
      projectId: defaultProjectId,
      at,
      event: { _tag: "RunByHand" as const, at },
      chain: []
    }))
    yield* Effect.provide(Effect.flatMap(ExecutionStore, (store) => store.enqueue(executions)), stores[0]!)
    const claim = Effect.flatMap(
      ExecutionStore,
      (store) => store.claim({ now: at, again: at + 1000, limit: 50, except: [] })
    )
    const claimed = yield* Effect.all(
      Array.from({ length: 12 }, (_, i) => Effect.provide(claim, stores[i % 3]!)),
      { concurrency: "unbounded" }
    )
    const ids = claimed.flat().map(({ executionId }) => executionId)
    assert.strictEqual(new Set(ids).size, ids.length)
    // What was locked by another is left to the next.
    while (ids.length < executions.length) {
      const more = yield* Effect.provide(claim, stores[0]!)
      assert.isNotEmpty(more)
      for (const { executionId } of more) ids.push(executionId)
    }
    assert.strictEqual(new Set(ids).size, executions.length)
  }).pipe(Effect.scoped))

it.live("scenes that run each other share one budget, whichever nodes carry them out", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const [first, second] = [yield* cloudOn(url), yield* cloudOn(url)]
    const create = (name: string, scene: SceneId | undefined) =>
      Effect.flatMap(Scenes, (scenes) =>
        scenes.create(defaultProjectId, {
          name,
          status: "enable",
          actions: scene === undefined
            ? []
            : Array.from({ length: 50 }, () => ({ URI: "action/rule", params: { scene_id: scene } }))
        })).pipe(Effect.map((created) => created.scene.sceneId), Effect.provide(first))
    const chain = [yield* create("0", undefined)]
    for (let depth = 1; depth < 4; depth++) chain.unshift(yield* create(`${depth}`, chain[0]))
    // Each node wakes for what it has stored, and both claim what is due.
    yield* Effect.forEach([first, second], (node) =>
      Effect.provide(Effect.flatMap(Scenes, (scenes) => scenes.run(defaultProjectId, chain[0]!)), node), {
      concurrency: 2
    })
    const all = Effect.map(Effect.forEach(chain, executionsOf), (executions) =>
      executions.flat()).pipe(
        Effect.provide(second)
      )
    const ended = yield* eventually(all, {
      until: (executions) =>
        executions.length > 2 && executions.every(({ dueAt }) => dueAt === null)
    })
    for (const root of ended.filter(({ chain }) => chain.length === 0)) {
      assert.strictEqual(root.status, "limited")
      const tree = ended.filter(({ executionId, rootId }) =>
        executionId === root.executionId || rootId === root.executionId
      )
      assert.isAtMost(tree.reduce((sum, { outcomes }) => sum + outcomes.length, 0), 500)
    }
  }).pipe(Effect.scoped))
