import {
  defaultProjectId,
  DeviceCloud,
  ExecutionStore,
  leaseMillis,
  type SceneId,
  SceneLimits,
  Scenes
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createScene, executionsOf, hot, newScene, runScene, settle, statusesOf } from "./SceneFixtures.ts"

/** Scenes of so many actions, each of which runs the next scene. Returns them, the first one first. */
const cascade = Effect.fnUntraced(function*(depth: number, actions: number) {
  const chain: Array<SceneId> = [yield* newScene({})]
  while (chain.length < depth) {
    chain.unshift(yield* newScene({ actions: Array.from({ length: actions }, () => runScene(chain[0]!)) }))
  }
  return chain
})

const shared = DeviceCloud.layer.pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer),
  Layer.provideMerge(TestClock.layer())
)

it.layer(shared, { excludeTestServices: true })("what scenes may lead to", (it) => {
  it.effect("eight scenes that run the next one fifty times stop with the budget of the first", () =>
    Effect.gen(function*() {
      const chain = yield* cascade(8, 50)
      const executionId = yield* (yield* Scenes).run(defaultProjectId, chain[0]!)
      yield* settle
      yield* settle
      const all = (yield* Effect.forEach(chain, executionsOf)).flat()
      assert.isAtMost(all.reduce((sum, { outcomes }) => sum + outcomes.length, 0), 500)
      assert.strictEqual(all.length, 10)
      assert.deepStrictEqual(all.filter(({ dueAt }) => dueAt !== null), [])
      const reason = `The scenes that execution ${executionId} has led to have more than 500 actions together`
      const [root] = yield* executionsOf(chain[0]!)
      assert.strictEqual(root!.status, "limited")
      assert.deepStrictEqual(
        root!.outcomes.map(({ detail, status }) => [status, detail]).slice(9),
        Array.from({ length: 41 }, () => ["limited", reason])
      )
      // What it had led to before does not go on either.
      for (const { outcomes, reason: said, status } of yield* executionsOf(chain[1]!)) {
        assert.strictEqual(status, "limited")
        if (outcomes.length === 0) assert.strictEqual(said, reason)
      }
    }))

  it.effect("a scene with a backlog is paused, and another of its project runs all the same", () =>
    Effect.gen(function*() {
      const store = yield* ExecutionStore
      const at = yield* Clock.currentTimeMillis
      const [noisy, target] = [yield* newScene({}), yield* newScene({})]
      yield* store.enqueue(Array.from({ length: 3000 }, (_, number) => ({
        executionId: `noisy-${number}`,
        sceneId: noisy,
        projectId: defaultProjectId,
        at,
        event: { _tag: "RunByScene" as const, at, sceneId: target, executionId: "other", device: null },
        chain: []
      })))
      const quiet = yield* newScene({ actions: [runScene(target)] })
      yield* (yield* Scenes).run(defaultProjectId, quiet)
      yield* settle
      assert.deepStrictEqual([yield* statusesOf(quiet), yield* statusesOf(target)], [["succeeded"], ["succeeded"]])
      assert.strictEqual((yield* store.countFired([noisy], at, yield* Clock.currentTimeMillis)).get(noisy), 100)
      assert.deepStrictEqual(new Set(yield* statusesOf(noisy)), new Set(["paused"]))
    }))

  it.effect("a scene that would go beyond the budget is made with a warning, which explain repeats", () =>
    Effect.gen(function*() {
      const [, second, third] = yield* cascade(3, 50)
      const { scene, warnings } = yield* createScene({
        actions: Array.from({ length: 50 }, () => runScene(second!)),
        triggers: [{ URI: "trigger/cron", params: { cron: "0 0 0 1 1 *" } }]
      })
      const expected = ["The scene may be stopped: it and the scenes that it runs have more than 500 actions together"]
      assert.deepStrictEqual(warnings, expected)
      const explained = yield* (yield* Scenes).explain(defaultProjectId, scene.sceneId, {
        _tag: "Cron",
        cronId: undefined
      })
      assert.deepInclude(explained, { fires: true, warnings: expected })
      const modest = yield* createScene({ actions: Array.from({ length: 9 }, () => runScene(third!)) })
      assert.deepStrictEqual(modest.warnings, [])
      assert.deepStrictEqual((yield* createScene({ actions: [runScene(scene.sceneId)] })).warnings, expected)
    }))
})

/** A cloud of its own with these limits, on these stores. */
const cloudWith = (stores: Context.Context<DeviceCloud.Stores>, limits: Partial<SceneLimits>) =>
  DeviceCloud.layer.pipe(
    Layer.provide(Layer.succeedContext(stores)),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provide(Layer.succeed(SceneLimits, { actions: 500, duration: 600_000, pending: 10_000, ...limits }))
  )

it.effect("the budget of an execution holds across a restart", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const limits = { actions: 10, duration: 600_000 }
    const [store, at] = [Context.get(stores, ExecutionStore), yield* Clock.currentTimeMillis]
    // One node has carried out the first of the actions, and ends before it has noted that.
    const chain = yield* cascade(3, 4).pipe(Effect.provide(cloudWith(stores, limits)))
    yield* store.enqueue([{
      executionId: "root",
      sceneId: chain[0]!,
      projectId: defaultProjectId,
      at,
      event: { _tag: "RunByHand", at },
      chain: []
    }])
    yield* store.claim({ now: at, again: at + leaseMillis, limit: 10, except: [] })
    yield* store.enqueueChild(
      {
        executionId: "root.0",
        sceneId: chain[1]!,
        projectId: defaultProjectId,
        at: at + 10 * leaseMillis,
        event: { _tag: "RunByHand", at },
        chain: []
      },
      "root",
      { at, own: 4, adds: 4, limits }
    )
    yield* Effect.gen(function*() {
      yield* TestClock.adjust(leaseMillis)
      yield* settle
      const [root] = yield* executionsOf(chain[0]!)
      // The first is there already; the next would have four actions, where two are left.
      assert.deepStrictEqual(root!.outcomes.map(({ status }) => status), [
        "succeeded",
        "limited",
        "limited",
        "limited"
      ])
      yield* TestClock.adjust(10 * leaseMillis)
      assert.deepStrictEqual(yield* statusesOf(chain[1]!), ["limited"])
    }).pipe(Effect.provide(cloudWith(stores, limits)))
  }))

it.effect("what would be more than may wait is not stored, and the scene says so once", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const [store, at] = [Context.get(stores, ExecutionStore), yield* Clock.currentTimeMillis]
    yield* Effect.gen(function*() {
      const scenes = yield* Scenes
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const device = yield* Fixtures.createDevice(product)
      const connected = yield* SimulatedDevice.connect(device)
      const sceneId = yield* newScene({
        triggers: [hot(product), { URI: "trigger/cron", params: { cron: "* * * * * *" } }]
      })
      const later = at + 3_600_000
      yield* store.enqueue(Array.from({ length: 20 }, (_, number) => ({
        executionId: `later-${number}`,
        sceneId,
        projectId: defaultProjectId,
        at: later,
        event: { _tag: "RunByHand" as const, at: later },
        chain: []
      })))
      // This one makes the node count.
      yield* connected.postProperties({ temperature: 31 })
      yield* settle
      for (let temperature = 32; temperature < 42; temperature++) {
        assert.strictEqual((yield* connected.postProperties({ temperature })).code, 200)
      }
      yield* TestClock.adjust("20 seconds")
      const lines = (yield* executionsOf(sceneId)).filter(({ status }) => status === "limited")
      assert.strictEqual(lines.length, 1)
      assert.match(
        lines[0]!.reason,
        /^\d\d executions since .* were not stored: 20 executions of the project wait to be carried out, and no more may$/
      )
      const full = yield* Effect.flip(scenes.run(defaultProjectId, sceneId))
      assert.deepInclude(full, { _tag: "TooManyExecutions", limit: 20 })
      const { deviceName, productKey } = device
      const sample = { _tag: "Property", productKey, deviceName, properties: { temperature: 99 } } as const
      assert.deepInclude(yield* scenes.explain(defaultProjectId, sceneId, sample), {
        fires: false,
        reason: "20 executions of the project wait to be carried out, and no more may"
      })
      // As soon as some have been carried out, there is room again.
      const waiting = yield* store.claim({ now: later, again: later, limit: 10, except: [] })
      yield* store.save(waiting.map((execution) => ({ ...execution, status: "succeeded", dueAt: null })), 0)
      yield* settle
      yield* connected.postProperties({ temperature: 77 })
      yield* settle
      const fired = (yield* executionsOf(sceneId)).filter(({ event }) =>
        event._tag === "PropertiesChanged" && event.properties["temperature"]!.value === 77
      )
      assert.deepStrictEqual(fired.map(({ status }) => status), ["succeeded"])
    }).pipe(Effect.provide(cloudWith(stores, { pending: 20 })), Effect.scoped)
  }))
