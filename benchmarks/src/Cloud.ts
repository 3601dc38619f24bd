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
  ProductKey,
  Products,
  type ProjectId,
  Projects,
  SceneId,
  SceneStore,
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
  /** Makes a scene for each of so many devices, from the last one on. One in a hundred of the reported values fires it. */
  readonly scenes?: number
  /** Projects over which the devices are spread, each with a product of its own. Default: the one that there is. */
  readonly projects?: number
  /** Properties of the thing model beside the usual three: numbers `p0`, `p1` and so on. */
  readonly moreProperties?: number
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
    { id: "mode", name: "Mode", accessMode: "rw", dataType: { type: "text", length: 16 } },
    ...Array.from({ length: plan.moreProperties ?? 0 }, (_, i) => ({
      id: `p${i}`,
      name: `Property ${i}`,
      accessMode: "rw",
      dataType: { type: "double", min: -40, max: 120 }
    }))
  ]
}

const accessKey = `dck_${"b".repeat(12)}_${"0".repeat(43)}`

const http = Layer.unwrap(
  Effect.map(StoreHealth, ({ check }) => ManagementApi.layer({ readiness: { storage: check } }))
).pipe(Layer.provideMerge(PlatformNode.HttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })))

/** Makes devices from the one with number `first` on. */
const makeDevices = Effect.fnUntraced(function*(projectId: ProjectId, first: number, count: number) {
  const { productKey } = yield* (yield* Products).create(projectId, {
    name: "Load",
    nodeType: "direct",
    networkType: "ethernet",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  yield* (yield* ThingModels).importFrom(projectId, productKey, "metadata", JSON.stringify(model))
  const mac = yield* Mac
  const drafts = Array.from({ length: count }, (_, i) => ({
    deviceId: DeviceId.make(`load${productKey}${first + i}`),
    deviceName: DeviceName.make(`load${first + i}`),
    deviceSecret: `secret${first + i}`.padEnd(32, "0"),
    nickname: "",
    batchId: 0,
    cloudGateway: null,
    createdAt: 0
  }))
  Option.getOrThrow(yield* (yield* DeviceStore).insertMany(projectId, productKey, drafts))
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

/** Stores scenes as they are: to check each of 100,000 before takes minutes. */
const makeScenes = Effect.fnUntraced(function*(devices: ReadonlyArray<LoadDevice>) {
  const store = yield* SceneStore
  for (const device of devices) {
    const [productKey, deviceName] = [ProductKey.make(device.productKey), DeviceName.make(device.deviceName)]
    const of = { _tag: "Property", productKey, deviceName } as const
    yield* store.insert({
      sceneId: SceneId.make(`scene${deviceName}`),
      projectId: defaultProjectId,
      name: `Scene of ${deviceName}`,
      desc: "",
      status: "enable",
      triggers: [{ ...of, propertyId: "temperature", comparison: { type: ">", value: "20.995" } }],
      conditions: [{ ...of, propertyId: "humidity", comparison: { type: "<", value: "90" } }],
      actions: [],
      pausedUntil: null,
      revision: 1,
      createdAt: 0,
      updatedAt: 0
    }, [])
  }
})

/** Projects that are made at the same time. */
const making = 16

const makeAll = Effect.gen(function*() {
  const { projects: count = 1, scenes = 0 } = plan
  const projects = yield* Projects
  const of = Math.ceil(plan.devices / count)
  const devices = yield* Effect.forEach(
    Array.from({ length: count }, (_, i) => i),
    (i) =>
      Effect.flatMap(
        i === 0 ? Effect.succeed({ id: defaultProjectId }) : projects.create({ name: `Project ${i}` }),
        ({ id }) => makeDevices(id, i * of, Math.min(of, plan.devices - i * of))
      ),
    { concurrency: making }
  )
  yield* makeScenes(devices.flat().slice(plan.devices - scenes))
  return devices.flat()
})

const announce = Effect.gen(function*() {
  const { mqtt, mqtts } = yield* MqttServer
  const port = Number(new URL(mqtt ?? mqtts!).port)
  yield* (yield* AccessKeys).setOwner(Redacted.make(accessKey))
  const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  const said: Said = { port, devices: yield* makeAll, http: { url, accessKey } }
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
