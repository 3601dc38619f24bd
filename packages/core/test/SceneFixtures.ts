/**
 * Scenes to test with, and what became of them.
 */
import {
  type ActionDraft,
  defaultProjectId,
  type Device,
  DeviceCloud,
  type Product,
  type SceneDraft,
  type SceneId,
  Scenes,
  type TriggerDraft
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import type { Context } from "effect"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

/** A property trigger: the temperature of a device of the product rises above 30. */
export const hot = (product: Product, params: Partial<TriggerDraft["params"]> = {}): TriggerDraft => ({
  URI: "trigger/device/property",
  params: {
    product_key: product.productKey,
    device_name: "*",
    property_id: "temperature",
    compare_type: ">",
    compare_val: "30",
    ...params
  }
})

/** A timer. */
export const cron = (expression: string, params: TriggerDraft["params"] = {}): TriggerDraft => ({
  URI: "trigger/cron",
  params: { cron: expression, ...params }
})

/** An action that sets properties of a device. */
export const set = ({ deviceId }: Device, items: ActionDraft["params"]["items"]): ActionDraft => ({
  URI: "action/device/property",
  params: { device_id: deviceId, items }
})

/** An action that runs another scene. */
export const runScene = (sceneId: string): ActionDraft => ({ URI: "action/rule", params: { scene_id: sceneId } })

let lastName = 0

export const createScene = (draft: Partial<SceneDraft>) =>
  Effect.flatMap(
    Scenes,
    (scenes) => scenes.create(defaultProjectId, { name: `Scene ${++lastName}`, status: "enable", ...draft })
  )

/** Creates an enabled scene of the default project. Returns its id. */
export const newScene = (draft: Partial<SceneDraft>) => Effect.map(createScene(draft), ({ scene }) => scene.sceneId)

/** The executions of a scene, latest first. */
export const executionsOf = (sceneId: SceneId) =>
  Effect.flatMap(
    Scenes,
    (scenes) =>
      Effect.map(scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 100 }), ({ items }) => items)
  )

export const statusesOf = (sceneId: SceneId) =>
  Effect.map(executionsOf(sceneId), (executions) => executions.map(({ status }) => status))

/** Lets what was fired be carried out. */
export const settle = Effect.repeat(TestClock.adjust("100 millis"), { times: 15 })

/** The parameters of what the device was told since the last call. */
export const received = (device: SimulatedDevice.SimulatedDevice) =>
  Effect.map(Queue.clear(device.received), (messages) => messages.map(({ params }) => params))

/** A connected device of a product whose reports are not checked. */
export const lamp = Effect.gen(function*() {
  const cloud = yield* TestCloud
  const product = yield* cloud.createProduct({ validateType: "none" })
  const device = yield* cloud.createDevice(product)
  return { product, device, connected: yield* cloud.connect(device) }
})

/** A cloud on storage that outlives it. */
export const cloudOn = (stores: Context.Context<DeviceCloud.Stores>) =>
  DeviceCloud.layer.pipe(Layer.provide(Layer.succeedContext(stores)), Layer.provide(PlatformNode.layer))
