import {
  defaultProjectId,
  type DeviceCloud,
  Devices,
  ExecutionStore,
  leaseMillis,
  type Product,
  type SceneDraft,
  type SceneId,
  Scenes
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { cloud, createProduct } from "../src/coldStore.ts"
import { Pager } from "../src/Pager.ts"
import { Roster } from "../src/Roster.ts"

/** Time begins at midnight. From one o'clock on nobody is on duty. */
const roster = Roster.layer({ cooling: [{ person: "Kim", from: 0, until: 1 }] })

/** A cloud on storage that outlives it, as a node on a database. */
const node = (stores: Context.Context<DeviceCloud.Stores>, pager: Context.Context<Pager>) =>
  cloud.pipe(
    Layer.provide(Layer.succeedContext(stores)),
    Layer.provideMerge(Layer.mergeAll(Layer.succeedContext(pager), roster))
  )

const application = Layer.unwrap(
  Effect.gen(function*() {
    return node(yield* Layer.build(StorageMemory.layer), yield* Layer.build(Pager.layer))
  })
)

const draft = ({ productKey }: Product, fields: Partial<SceneDraft> = {}): SceneDraft => ({
  name: "Cold store is warm",
  status: "enable",
  triggers: [{
    URI: "trigger/device/property",
    params: {
      product_key: productKey,
      device_name: "*",
      property_id: "temperature",
      compare_type: ">",
      compare_val: "8"
    }
  }],
  conditions: [{ URI: "condition/acme/on-duty", params: { team: "cooling" } }],
  actions: [{ URI: "action/acme/page", params: { team: "cooling", text: "hurry" } }],
  ...fields
})

const create = (draft: SceneDraft) =>
  Effect.flatMap(Scenes, (scenes) => Effect.map(scenes.create(defaultProjectId, draft), ({ scene }) => scene))

const latest = (sceneId: SceneId) =>
  Effect.flatMap(
    Scenes,
    (scenes) =>
      Effect.map(scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 1 }), ({ items }) => items[0]!)
  )

/** Lets what was fired be carried out. */
const settle = Effect.repeat(TestClock.adjust("100 millis"), { times: 15 })

const pages = Effect.flatMap(Pager, (pager) => Effect.map(pager.sent, (sent) => [...sent.values()]))

it.effect("the parameters are checked, and every problem is named", () =>
  Effect.gen(function*() {
    const product = yield* createProduct
    const refused = (fields: Partial<SceneDraft>) =>
      Effect.map(Effect.flip(create(draft(product, fields))), (error) =>
        error._tag === "InvalidInput"
          ? error.issues.map(({ message, path }) => [path.join("."), message])
          : error._tag)
    assert.deepStrictEqual(
      yield* refused({
        conditions: [{ URI: "condition/acme/on-duty", params: {} }],
        actions: [
          { URI: "action/rule", params: {} },
          { URI: "action/acme/page", params: { team: 5, text: "" } },
          { URI: "action/acme/fax", params: {} }
        ]
      }),
      [
        ["conditions.0.params.team", "Missing key"],
        ["actions.0.params.scene_id", "Expected a text that is not empty"],
        ["actions.1.params.team", "Expected string"],
        ["actions.1.params.text", "Expected a value with a length of at least 1"],
        [
          "actions.2.URI",
          "Expected one of action/device/property, action/device/service, action/rule, action/webhook, action/delay, action/acme/page"
        ]
      ]
    )
    // What fits by itself must fit the application as well.
    assert.deepStrictEqual(
      yield* refused({ actions: [{ URI: "action/acme/page", params: { team: "heating", text: "hurry" } }] }),
      [["actions.0.params.team", "Expected one of the teams cooling"]]
    )
    // Scenes keep the parameters that the schemas know.
    const { actions, conditions, sceneId } = yield* create(draft(product, {
      actions: [{ URI: "action/acme/page", params: { team: "cooling", text: "hurry", unknown: true } }]
    }))
    const stored = yield* (yield* Scenes).get(defaultProjectId, sceneId)
    assert.deepStrictEqual([stored.conditions, stored.actions], [conditions, actions])
    assert.deepStrictEqual(actions, [
      { _tag: "Custom", uri: "action/acme/page", params: { team: "cooling", text: "hurry" } }
    ])
  }).pipe(Effect.provide(application)))

it.effect("a device fires the scene, and explain shows what the condition finds", () =>
  // Before the cloud is there, time passes at no cost.
  Effect.andThen(
    TestClock.setTime(58 * 60_000),
    Effect.gen(function*() {
      const [scenes, devices] = [yield* Scenes, yield* Devices]
      const product = yield* createProduct
      const device = yield* devices.create(defaultProjectId, product.productKey, {})
      const { deviceName, productKey } = device
      const { sceneId } = yield* create(draft(product))
      const connected = yield* SimulatedDevice.connect(device)
      const explain = scenes.explain(defaultProjectId, sceneId, {
        _tag: "Property",
        productKey,
        deviceName,
        properties: { temperature: 20 }
      })
      assert.deepInclude(yield* explain, { fires: true })
      yield* connected.postProperties({ temperature: 9 })
      yield* settle
      assert.deepStrictEqual(yield* pages, [{ to: "Kim", text: "Cold store is warm: hurry" }])
      assert.deepInclude(yield* latest(sceneId), { status: "succeeded" })

      yield* TestClock.adjust("3 minutes")
      const { conditions, fires } = yield* explain
      assert.isFalse(fires)
      assert.deepInclude(conditions[0], {
        verdict: "fails",
        value: null,
        source: "roster",
        time: yield* Clock.currentTimeMillis,
        reason: "On duty in the team cooling: nobody"
      })
      yield* connected.postProperties({ temperature: 10 })
      yield* settle
      const { reason, status } = yield* latest(sceneId)
      assert.deepStrictEqual([status, reason], [
        "not_met",
        "Condition 1 does not hold: On duty in the team cooling: nobody"
      ])
      assert.lengthOf(yield* pages, 1)
    }).pipe(Effect.scoped, Effect.provide(application))
  ))

it.effect("an action is attempted again while all lines are busy", () =>
  Effect.gen(function*() {
    const pager = yield* Pager
    const { sceneId } = yield* create(draft(yield* createProduct))
    yield* pager.keepBusy(2)
    yield* (yield* Scenes).run(defaultProjectId, sceneId)
    yield* settle
    const [outcome] = (yield* latest(sceneId)).outcomes
    assert.deepInclude(outcome, { status: "pending", attempts: 1, detail: "All lines are busy" })
    yield* TestClock.adjust("8 seconds")
    yield* settle
    assert.deepInclude((yield* latest(sceneId)).outcomes[0], { status: "succeeded", attempts: 3, detail: "Paged Kim" })
    // It gives up in the end.
    yield* pager.keepBusy(10)
    yield* (yield* Scenes).run(defaultProjectId, sceneId)
    for (const seconds of [1, 4, 16, 64, 256]) {
      yield* settle
      yield* TestClock.adjust(`${seconds + 1} seconds`)
    }
    yield* settle
    assert.deepInclude((yield* latest(sceneId)).outcomes[0], { status: "failed", attempts: 6 })
  }).pipe(Effect.provide(application)))

it.effect("a node that ends leaves the action to the next one, which pages nobody twice", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const pager = yield* Layer.build(Pager.layer)
    const executions = Context.get(stores, ExecutionStore)
    const now = yield* Clock.currentTimeMillis
    // The node ends after the person was paged and before that is noted.
    const sceneId = yield* Effect.gen(function*() {
      const { sceneId } = yield* create(draft(yield* createProduct))
      yield* (yield* Pager).send("execution-1.0", { to: "Kim", text: "Cold store is warm: hurry" })
      return sceneId
    }).pipe(Effect.provide(node(stores, pager)))
    yield* executions.enqueue([{
      executionId: "execution-1",
      sceneId,
      projectId: defaultProjectId,
      at: now,
      event: { _tag: "RunByHand", at: now },
      chain: []
    }])
    assert.lengthOf(yield* executions.claim({ now, again: now + leaseMillis, limit: 10, except: [] }), 1)

    yield* Effect.gen(function*() {
      yield* settle
      assert.deepInclude(yield* latest(sceneId), { status: "pending" })
      yield* TestClock.adjust(leaseMillis)
      yield* settle
      const { outcomes, status } = yield* latest(sceneId)
      assert.deepStrictEqual([status, outcomes[0]!.detail], ["succeeded", "Paged Kim"])
      assert.lengthOf(yield* pages, 1)
    }).pipe(Effect.provide(node(stores, pager)))
  }))
