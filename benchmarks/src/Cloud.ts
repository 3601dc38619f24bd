/**
 * Device Cloud as it is measured: core, storage and broker in a process of its
 * own, with devices that the load uses.
 */
import "effect/schema/SchemaJITCompiler/enable"
import {
  connectText,
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  DeviceName,
  DeviceStore,
  Mac,
  Products
} from "@device-cloud/core"
import { MqttBroker } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { readFileSync } from "node:fs"
import type { LoadDevice } from "./Load.ts"

export interface CloudPlan {
  readonly devices: number
  /** PostgreSQL; without it, memory. */
  readonly databaseUrl?: string
  /** Files; without them, plain TCP. */
  readonly tls?: { readonly certificate: string; readonly key: string }
}

const plan = JSON.parse(process.argv[2]!) as CloudPlan

const storage = plan.databaseUrl === undefined
  ? StorageMemory.layer
  : StoragePg.layer({ url: Redacted.make(plan.databaseUrl) })

const broker = MqttBroker.layer({
  host: "127.0.0.1",
  ...plan.tls === undefined ? { tcp: { port: 0 } } : {
    tls: {
      port: 0,
      certificate: readFileSync(plan.tls.certificate, "utf8"),
      key: readFileSync(plan.tls.key, "utf8")
    }
  }
})

const makeDevices = Effect.gen(function*() {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Load",
    nodeType: "direct",
    networkType: "ethernet",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
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
  return drafts.map(({ deviceName, deviceSecret }): LoadDevice => ({
    clientId: `${deviceName}|signmethod=hmacsha1,authType=1|`,
    username: `${deviceName}&${productKey}`,
    password: mac.sign("hmacsha1", deviceSecret, connectText({ clientId: deviceName, deviceName, productKey })),
    topic: `/sys/${productKey}/${deviceName}/thing/event/property/post`
  }))
})

const announce = Effect.gen(function*() {
  const { mqtt, mqtts } = yield* MqttBroker
  const port = Number(new URL(mqtt ?? mqtts!).port)
  yield* Console.log(JSON.stringify({ port, devices: yield* makeDevices }))
})

Layer.effectDiscard(announce).pipe(
  Layer.provideMerge(broker),
  Layer.provideMerge(DeviceCloud.layer),
  Layer.provide(storage),
  Layer.provide(PlatformNode.layer),
  Layer.launch,
  NodeRuntime.runMain
)
