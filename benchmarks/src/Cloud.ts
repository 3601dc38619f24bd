/**
 * The measured Device Cloud: core, storage, broker and API in their own process,
 * with the devices that the load uses.
 */
import "effect/schema/SchemaJITCompiler/enable"
import {
  AccessKeys,
  connectText,
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  DeviceName,
  DeviceStore,
  Mac,
  Objects,
  Products,
  Scenes,
  StoreHealth,
  ThingModels
} from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import * as StorageSqlite from "@device-cloud/storage-sqlite"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { LoadDevice } from "./Load.ts"

export interface CloudPlan {
  readonly devices: number
  /** URL of PostgreSQL; absent, and without a file of SQLite: storage in memory. */
  readonly databaseUrl?: string
  /** A file of SQLite. */
  readonly sqliteFile?: string
  /** Makes a scene for each device. One in a hundred of the reported values fires it. */
  readonly hasScenes?: true
  /** Files in PEM; absent: plain TCP. */
  readonly tls?: { readonly certificate: string; readonly key: string }
}

/** What the process says when it can be reached. */
export interface Said {
  readonly port: number
  readonly devices: ReadonlyArray<LoadDevice>
  readonly http: { readonly url: string; readonly accessKey: string }
}

const plan = JSON.parse(process.argv[2]!) as CloudPlan

const keyRing = PlatformNode.NodeKeyRing.layerKeys(Redacted.make(`${"b".repeat(42)}A=`))

const storage = plan.sqliteFile !== undefined
  ? StorageSqlite.layer({ filename: plan.sqliteFile }).pipe(Layer.provide(keyRing))
  : plan.databaseUrl !== undefined
  ? StoragePg.layer({ url: Redacted.make(plan.databaseUrl) }).pipe(Layer.provide(keyRing))
  : StorageMemory.layer

const broker = MqttServer.layer({
  host: "127.0.0.1",
  ...plan.tls === undefined ? { tcp: { port: 0 } } : {
    tls: {
      port: 0,
      certificate: readFileSync(plan.tls.certificate, "utf8"),
      key: readFileSync(plan.tls.key, "utf8")
    }
  }
})

/** The thing model of the load's posts. */
const model = {
  properties: [
    { id: "temperature", name: "Temperature", accessMode: "rw", dataType: { type: "double", min: -40, max: 120 } },
    { id: "humidity", name: "Humidity", accessMode: "r", dataType: { type: "int", min: 0, max: 100 } },
    { id: "mode", name: "Mode", accessMode: "rw", dataType: { type: "text", length: 16 } }
  ]
}

const accessKey = `dck_${"b".repeat(12)}_${"0".repeat(43)}`

const http = Layer.unwrap(
  Effect.map(StoreHealth, ({ check }) => ManagementApi.layer({ readiness: { storage: check } }))
).pipe(Layer.provideMerge(PlatformNode.HttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })))

const makeDevices = Effect.gen(function*() {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Load",
    nodeType: "direct",
    networkType: "ethernet",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  yield* (yield* ThingModels).importFrom(defaultProjectId, productKey, "metadata", JSON.stringify(model))
  const scenes = yield* Scenes
  const mac = yield* Mac
  const drafts = Array.from({ length: plan.devices }, (_, i) => ({
    deviceId: DeviceId.make(`load${productKey}${i}`),
    deviceName: DeviceName.make(`load${i}`),
    deviceSecret: `secret${i}`.padEnd(32, "0"),
    nickname: "",
    batchId: 0,
    cloudGateway: null,
    createdAt: 0
  }))
  Option.getOrThrow(yield* (yield* DeviceStore).insertMany(defaultProjectId, productKey, drafts))
  for (const { deviceName } of plan.hasScenes === true ? drafts : []) {
    const of = { product_key: productKey, device_name: deviceName }
    yield* scenes.create(defaultProjectId, {
      name: `Scene of ${deviceName}`,
      status: "enable",
      triggers: [{
        URI: "trigger/device/property",
        params: { ...of, property_id: "temperature", compare_type: ">", compare_val: "20.995" }
      }],
      conditions: [{
        URI: "condition/device/property",
        params: { ...of, property_id: "humidity", compare_type: "<", compare_val: "90" }
      }]
    })
  }
  return drafts.map(({ deviceId, deviceName, deviceSecret }): LoadDevice => ({
    deviceId,
    productKey,
    deviceName,
    deviceSecret,
    clientId: `${deviceName}|signmethod=hmacsha1,authType=1|`,
    username: `${deviceName}&${productKey}`,
    password: mac.sign("hmacsha1", deviceSecret, connectText({ clientId: deviceName, deviceName, productKey })),
    topic: `/sys/${productKey}/${deviceName}/thing/event/property/post`
  }))
})

const announce = Effect.gen(function*() {
  const { mqtt, mqtts } = yield* MqttServer
  const port = Number(new URL(mqtt ?? mqtts!).port)
  yield* (yield* AccessKeys).setOwner(Redacted.make(accessKey))
  const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  const said: Said = { port, devices: yield* makeDevices, http: { url, accessKey } }
  yield* Console.log(JSON.stringify(said))
})

Layer.effectDiscard(announce).pipe(
  Layer.provideMerge(broker),
  Layer.provideMerge(http),
  Layer.provideMerge(DeviceCloud.layer),
  Layer.provide(Layer.provide(Objects.layer, PlatformNode.MemoryObjectStore.layer)),
  Layer.provide(storage),
  Layer.provide(PlatformNode.layer),
  Layer.launch,
  NodeRuntime.runMain
)
