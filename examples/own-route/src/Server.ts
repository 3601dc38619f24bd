/**
 * The management API with Acme's beside it, on an HTTP server of Node.js.
 */
import { DeviceCloud, Objects, StoreHealth } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { createServer } from "node:http"
import { InspectionApi } from "./InspectionApi.ts"
import * as InspectionHandlers from "./InspectionHandlers.ts"
import { Inspections } from "./Inspections.ts"

const api = Layer.unwrap(
  Effect.map(StoreHealth, ({ check }) =>
    ManagementApi.layer({
      readiness: { storage: check },
      beside: {
        api: InspectionApi,
        layer: HttpApiBuilder.layer(InspectionApi).pipe(Layer.provide(InspectionHandlers.layer))
      }
    }))
).pipe(Layer.provide(Inspections.layer))

/** The server on a port of this machine; 0: any. */
export const layer = (port: number) =>
  api.pipe(
    Layer.provideMerge(PlatformNode.HttpServer.layer(createServer, { host: "127.0.0.1", port })),
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )
