/**
 * A cold store that pages whoever is on duty when it gets too warm.
 */
import { defaultProjectId, DeviceCloud, type Execution, Products, Scenes } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Layer, Schedule } from "effect"
import * as Extensions from "./extensions.ts"
import { Pager } from "./Pager.ts"
import { Roster } from "./Roster.ts"

/** The cloud with the extensions. The application provides what they need. */
export const cloud = DeviceCloud.layer.pipe(
  Layer.provide(Extensions.layer),
  Layer.provideMerge(PlatformNode.layer)
)

export const Application = cloud.pipe(
  Layer.provide(StorageMemory.layer),
  Layer.provideMerge(Layer.mergeAll(
    Pager.layer,
    // What the example prints is the same at each hour.
    Roster.layer({ cooling: [{ person: "Kim", from: 0, until: 24 }] })
  ))
)

/** The product whose devices measure the temperature of cold stores. */
export const createProduct = Effect.flatMap(Products, (products) =>
  products.create(defaultProjectId, {
    name: "Cold store",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "none",
    dataFormat: "json",
    authType: "secret"
  }))

/** Creates the scene that pages the team, and runs it by hand. Returns what became of the page. */
export const coldStore = Effect.gen(function*() {
  const scenes = yield* Scenes
  const { productKey } = yield* createProduct
  const { scene: { sceneId } } = yield* scenes.create(defaultProjectId, {
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
    actions: [{ URI: "action/acme/page", params: { team: "cooling", text: "look after the compressor" } }]
  })
  yield* scenes.run(defaultProjectId, sceneId)
  const latest = Effect.map(
    scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 1 }),
    ({ items }): Execution | undefined => items[0]
  )
  const ended = yield* Effect.repeat(latest, {
    until: (execution) => execution !== undefined && execution.dueAt === null,
    schedule: Schedule.spaced("50 millis")
  })
  return ended?.outcomes[0]?.detail
})
