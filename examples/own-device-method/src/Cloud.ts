/**
 * A cloud whose devices say two things more than the protocol knows, over MQTT
 * and over HTTP.
 */
import { DeviceCloud, DeviceMethods, Objects } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Layer } from "effect"
import { createServer } from "node:http"
import { calibrate } from "./Calibration.ts"
import { selfTest, SelfTests } from "./SelfTests.ts"

const host = "127.0.0.1"

/** The whole cloud on two free ports of this machine. */
export const layer = Layer.mergeAll(
  DeviceMethods.layer([selfTest, calibrate]),
  MqttServer.layer({ host, tcp: { port: 0 } }),
  ManagementApi.layer({ readiness: {} })
).pipe(
  Layer.provideMerge(PlatformNode.HttpServer.layer(createServer, { host, port: 0 })),
  Layer.provideMerge(SelfTests.layer),
  Layer.provideMerge(DeviceCloud.layer),
  Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer)
)
