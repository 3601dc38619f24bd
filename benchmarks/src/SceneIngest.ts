/**
 * `scene-ingest`: reports of 2,000 devices through the whole cloud in memory,
 * without a network; beside the same without scenes. There are 10,000 scenes, one
 * for each device and others; one report in a hundred fires one, and its execution
 * is decided and noted.
 */
import {
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  type DeviceIdentity,
  DeviceName,
  DeviceStore,
  Products,
  Scenes,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Layer, ManagedRuntime } from "effect"
import { compare, type Comparison } from "./Comparison.ts"
import type { LoadResult } from "./Measurement.ts"

const devices = 10_000
/** Devices that report. */
const active = 2000
const batch = 2000
const measureMillis = 4000

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provide(PlatformNode.layer)
)

const prepare = Effect.fnUntraced(function*(hasScenes: boolean) {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Load",
    nodeType: "direct",
    networkType: "ethernet",
    validateType: "none",
    dataFormat: "json",
    authType: "secret"
  })
  const identities = Array.from({ length: devices }, (_, i): DeviceIdentity => ({
    deviceId: DeviceId.make(`device${i}`),
    projectId: defaultProjectId,
    productKey,
    deviceName: DeviceName.make(`name${i}`),
    validateType: "none"
  }))
  yield* (yield* DeviceStore).insertMany(
    defaultProjectId,
    productKey,
    identities.map(({ deviceId, deviceName }) => ({
      deviceId,
      deviceName,
      deviceSecret: "",
      nickname: "",
      batchId: 0,
      cloudGateway: null,
      createdAt: 0
    }))
  )
  const scenes = yield* Scenes
  for (const { deviceName } of hasScenes ? identities : []) {
    const of = { product_key: productKey, device_name: deviceName }
    yield* scenes.create(defaultProjectId, {
      name: `Scene of ${deviceName}`,
      status: "enable",
      triggers: [{
        URI: "trigger/device/property",
        params: { ...of, property_id: "temperature", compare_type: ">", compare_val: "98" }
      }],
      conditions: [{
        URI: "condition/device/property",
        params: { ...of, property_id: "humidity", compare_type: "<", compare_val: "90" }
      }]
    })
  }
  return identities
})

const start = async (hasScenes: boolean) => {
  const runtime = ManagedRuntime.make(cloud)
  const identities = await runtime.runPromise(prepare(hasScenes))
  const uplink = await runtime.runPromise(Uplink)
  let reports = 0
  const send = () =>
    new Promise<void>((resolve) => {
      let left = batch
      const receivedAt = Date.now()
      for (let i = 0; i < batch; i++, reports++) {
        const device = identities[reports % active]!
        const value = (Math.floor(reports / active) + reports) % 100
        const params = { temperature: value, humidity: 48, mode: "eco" }
        uplink.submitUnsafe({ device, method: "thing.event.property.post", params, receivedAt }, () => {
          if (--left === 0) resolve()
        })
      }
    })
  const measure = async (): Promise<LoadResult> => {
    const from = performance.now()
    let [count, seconds] = [0, 0]
    while (seconds * 1000 < measureMillis) {
      await send()
      count += batch
      seconds = (performance.now() - from) / 1000
    }
    return { count, seconds, p50: 0, p99: 0 }
  }
  await measure()
  return { measure, stop: () => runtime.dispose() }
}

export const sceneIngest = async (): Promise<ReadonlyArray<Comparison>> => {
  const [without, having] = [await start(false), await start(true)]
  try {
    return await compare({
      benchmark: "scene-ingest",
      scenario: `${devices} scenes, 1 report in 100 fires`,
      bar: 0.9,
      ours: having.measure,
      references: { "no scenes": { measure: without.measure } }
    })
  } finally {
    await without.stop()
    await having.stop()
  }
}
