import {
  AccessKeys,
  defaultProjectId,
  DeviceCloud,
  ProjectOverview,
  Quotas,
  Subscriptions,
  UpgradeTasks,
  WebhookClient
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { hot, newScene, settle } from "./SceneFixtures.ts"
import { createFirmware } from "./UpgradeFixtures.ts"

/** Whoever is called refuses. */
const refusing = WebhookClient.of({
  refuse: () => undefined,
  send: () => Effect.succeed({ status: 403, body: "" })
})

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, refusing)))
)

it.effect("each kind of thing that needs attention is found by what has happened", () =>
  Effect.gen(function*() {
    const { get } = yield* ProjectOverview
    const product = yield* Fixtures.createProduct({ validateType: "none" })
    const [steady, flapping] = [yield* Fixtures.createDevice(product), yield* Fixtures.createDevice(product)]
    assert.deepStrictEqual((yield* get(defaultProjectId)).attention, [])

    // No device asks for the firmware.
    const firmware = yield* createFirmware(product.productKey)
    const { taskId } = yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmware.firmwareId, {
      scopeMode: "all"
    })
    yield* TestClock.adjust("61 minutes")

    yield* (yield* Quotas).set(defaultProjectId, { devices: 2 })
    yield* (yield* AccessKeys).create(defaultProjectId, {
      name: "Short",
      role: "viewer",
      expiresAt: (yield* Clock.currentTimeMillis) + 86_400_000
    })
    yield* (yield* Subscriptions).create(defaultProjectId, {
      name: "Push",
      filter: { kinds: ["PropertiesReported"] },
      webhook: { url: "https://example.com/hook" }
    })
    const sceneId = yield* newScene({
      triggers: [hot(product)],
      actions: [{ URI: "action/webhook", params: { URL: "https://example.com/hook", method: "POST" } }]
    })
    const connected = yield* SimulatedDevice.connect(steady)
    for (const temperature of [20, 31]) yield* connected.postProperties({ temperature })
    yield* connected.send("thing.event.property.post", "no object")
    for (let i = 0; i < 5; i++) yield* Effect.scoped(SimulatedDevice.connect(flapping))
    yield* settle
    yield* Effect.repeat(TestClock.adjust("10 seconds"), { times: 1 })

    const { attention } = yield* get(defaultProjectId)
    const found = attention.map((item) => {
      switch (item.kind) {
        case "device_flapping":
        case "device_refused":
          return [item.kind, item.device.deviceId, item.count]
        case "upgrade_stuck":
          return [item.kind, item.task.taskId, item.count]
        case "scene_failing":
          return [item.kind, item.scene.sceneId, item.hasWebhook]
        case "subscription_failing":
          return [item.kind, item.subscription.name, item.isPaused]
        case "access_key_expires":
          return [item.kind, item.accessKey.name]
        case "quota_nearly_used":
          return [item.kind, item.quota, item.used, item.limit]
      }
    })
    assert.sameDeepMembers(found, [
      ["device_flapping", flapping.deviceId, 10],
      ["device_refused", steady.deviceId, 1],
      ["upgrade_stuck", taskId, 2],
      ["scene_failing", sceneId, true],
      ["subscription_failing", "Push", false],
      ["access_key_expires", "Short"],
      ["quota_nearly_used", "devices", 2, 2]
    ])
  }).pipe(Effect.scoped, Effect.provide(cloud)))
