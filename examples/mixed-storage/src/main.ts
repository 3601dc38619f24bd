/**
 * Reports two values of a meter and shows where the cloud keeps them.
 */
import { defaultProjectId, DeviceCloud, Devices, History, Products, Shadows } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StorageMemory from "@device-cloud/storage-memory"
import { SimulatedDevice } from "@device-cloud/testing"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import * as Storage from "./Storage.ts"

const history = StorageMemory.layerHistoryStore.pipe(Layer.provide(StorageMemory.layerTables))

const Cloud = DeviceCloud.layer.pipe(
  Layer.provide(Layer.unwrap(
    Effect.map(
      EmbeddedPostgres.make({ directory: ".device-cloud/mixed-storage" }),
      ({ url }) => Storage.layer({ url, history })
    )
  )),
  // Seals secrets in the database; whoever has the database alone cannot read them.
  Layer.provide(PlatformNode.NodeKeyRing.layerFile(".device-cloud/mixed-storage/secrets-key")),
  Layer.provideMerge(PlatformNode.layer)
)

const report = Effect.gen(function*() {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Meter",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  const device = yield* (yield* Devices).create(defaultProjectId, productKey, { nickname: "Kitchen" })
  const connected = yield* SimulatedDevice.connect(device)
  for (const power of [40, 42]) yield* connected.postProperties({ power })

  const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
  yield* Console.log(`PostgreSQL: the last value is ${shadow.reported["power"]?.value} W`)
  const samples = yield* (yield* History).properties(defaultProjectId, device.deviceId, "power", {
    start: 0,
    end: Number.MAX_SAFE_INTEGER,
    limit: 10,
    order: "asc"
  })
  yield* Console.log(`Memory: the values are ${samples.map(({ value }) => `${value} W`).join(", ")}`)
})

report.pipe(Effect.scoped, Effect.provide(Cloud), NodeRuntime.runMain)
