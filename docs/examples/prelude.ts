/**
 * What fragments of code in the documentation take for granted: the modules of the packages, and what an application
 * has of its own. `docs/src/Snippets.ts` imports from here what a fragment does not declare.
 */
import type {
  BindingStore,
  ConnectCredentials,
  DeviceConnection,
  DeviceId,
  DeviceIdentity,
  DeviceProver,
  DomainEvent,
  EventSinkError,
  HistoryStore,
  IdempotencyStore,
  Json,
  LifecycleHandler,
  MeshStore,
  ProductDraft,
  ProjectId,
  ThingModels
} from "@device-cloud/core"
import { defineThingModel, DeviceCloud as Services, type SceneAction, type SceneCondition } from "@device-cloud/core"
import type { connect, startCloud } from "@device-cloud/promise"
import * as Platform from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import type { Fixtures } from "@device-cloud/testing"
import { Context, Data, type Effect, Layer, type Redacted, Schema } from "effect"
import type { HttpServer } from "effect/http"

export * as BusNats from "@device-cloud/bus-nats"
export {
  AuditLog,
  defaultProjectId,
  DeviceAuthenticator,
  DeviceCloud,
  DeviceCredentials,
  DeviceLifecycle,
  DeviceReply,
  DeviceSessions,
  eventDocument,
  EventSink,
  HistoryApart,
  HistoryFromFeed,
  NodeBus,
  Products,
  SceneAction,
  SceneExtensions,
  Uplink,
  UplinkRates
} from "@device-cloud/core"
export type { DeviceProver } from "@device-cloud/core"
export * as EventsNats from "@device-cloud/events-nats"
export * as HistoryClickHouse from "@device-cloud/history-clickhouse"
export { Authorization, Envelope, failure, ManagementApi, respond } from "@device-cloud/http"
export * as PlatformNode from "@device-cloud/platform-node"
export { NodeKeyRing } from "@device-cloud/platform-node"
export * as StorageMemory from "@device-cloud/storage-memory"
export * as StoragePg from "@device-cloud/storage-pg"
export * as StorageSqlite from "@device-cloud/storage-sqlite"
export { CloudState, Fixtures } from "@device-cloud/testing"
export { MeshStoreContract } from "@device-cloud/testing/contracts"
export { assert, it, layer } from "@effect/vitest"
export { Effect, Exit, Layer, Option, Redacted, Result, Schema } from "effect"
export { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"

/** A database, and the credentials of services. */
export declare const url: Redacted.Redacted
export declare const clickHouseUrl: Redacted.Redacted
export declare const credential: Redacted.Redacted
export declare const accessKeyId: string
export declare const secretAccessKey: Redacted.Redacted
export declare const region: string

/** The parts of an application. */
export const Cloud = Services.layer.pipe(
  Layer.provideMerge(StoragePg.layerCloud({ url })),
  Layer.provideMerge(Platform.NodeKeyRing.layerFile("./secrets-key")),
  Layer.provideMerge(Platform.layer)
)
export declare const Storage: ReturnType<typeof StoragePg.layer>
export declare const MyIdempotencyStore: { readonly layer: Layer.Layer<IdempotencyStore> }
export declare const MyHistoryStore: { readonly layer: Layer.Layer<HistoryStore> }
export declare const MyBindings: { readonly layer: Layer.Layer<BindingStore> }
export declare const MyMeshStore: { readonly layer: Layer.Layer<MeshStore> }
export declare const HookServer: Layer.Layer<HttpServer.HttpServer>
export const Shelf = Schema.Struct({ id: Schema.String })

/** What it does with devices. */
export declare const projectId: ProjectId
export declare const draft: ProductDraft
export declare const tokens: DeviceProver
export declare const certificates: DeviceProver
export declare const credentials: ConnectCredentials
export declare const connection: Omit<DeviceConnection, "device">
export declare const params: unknown
export declare const bytes: number
export declare const receivedAt: number
export declare const myLog: {
  readonly record: (change: string, ...args: Parameters<LifecycleHandler>) => Effect.Effect<void>
}
export declare const myRows: {
  readonly of: (devices: ReadonlyArray<DeviceIdentity>) => Effect.Effect<ReadonlyArray<string>>
  readonly remove: (rows: ReadonlyArray<string>) => Effect.Effect<void>
}
export const heater = defineThingModel({
  properties: [{ id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } }],
  services: [{ id: "heat", name: "Heat", inputData: [{ id: "minutes", name: "Minutes", dataType: { type: "int" } }] }]
})
export const lamp = defineThingModel({
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } },
    { id: "energy", name: "Energy", accessMode: "r", dataType: { type: "double" } }
  ],
  events: [{ id: "overheated", name: "Overheated", outputData: [{ id: "at", name: "At", dataType: { type: "int" } }] }]
})
export declare const stored: Effect.Success<ReturnType<ThingModels["Service"]["get"]>>
export declare const device: Effect.Success<ReturnType<typeof Fixtures.createDevice>> & DeviceIdentity
export declare const deviceId: DeviceId
export declare const readDevice: Effect.Effect<{ readonly status: string }>
export declare const entry: { readonly event: DomainEvent }
export declare const samples: ReadonlyArray<{ readonly time: number; readonly value: Json }>
export declare const alarm: (at: number | undefined) => Effect.Effect<void>
export declare const fan: { readonly follow: (properties: object) => Promise<void> }
export declare const charge: (deviceId: string, properties: object) => Promise<void>
export declare const api: ReturnType<typeof connect>
export declare const cloud: Awaited<ReturnType<typeof startCloud>>
export declare const cache: {
  readonly forget: (id: string) => Effect.Effect<void>
  readonly forgetAll: Effect.Effect<void>
}
export declare const tokenService: {
  readonly find: (token: string) => Effect.Effect<Pick<DeviceIdentity, "productKey" | "deviceName">>
}
export declare const pager: {
  readonly page: (call: Readonly<Record<"id" | "team" | "text", string>>) => Effect.Effect<void>
}
export class PagerIsBusy extends Data.TaggedError("PagerIsBusy")<object> {}
export class Pager extends Context.Service<Pager, {
  readonly page: (
    call: Readonly<Record<"id" | "team" | "text", string>>
  ) => Effect.Effect<{ readonly person: string }, PagerIsBusy>
}>()("Pager") {}
export class Roster extends Context.Service<Roster, {
  readonly personOf: (team: string, now: number) => string | undefined
}>()("Roster") {}
export declare const page: SceneAction.SceneAction
export declare const duty: SceneCondition.SceneCondition
export declare const ledger: { readonly append: (rows: ReadonlyArray<object>) => Effect.Effect<void, EventSinkError> }
