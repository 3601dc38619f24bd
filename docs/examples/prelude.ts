/**
 * What fragments of code in the documentation take for granted: the modules of the packages, and what an application
 * has of its own. `docs/src/Snippets.ts` imports from here what a fragment does not declare.
 */
import type {
  ConnectCredentials,
  DeviceConnection,
  DeviceIdentity,
  DeviceProver,
  EventSinkError,
  HistoryStore,
  IdempotencyStore,
  LifecycleHandler,
  MeshStore,
  ProductDraft,
  ProjectId
} from "@device-cloud/core"
import type { ManagementApi } from "@device-cloud/http"
import type * as StoragePg from "@device-cloud/storage-pg"
import { type Effect, type Layer, type Redacted, Schema } from "effect"
import type { HttpServer } from "effect/http"

export {
  AuditLog,
  DeviceAuthenticator,
  DeviceCloud,
  DeviceCredentials,
  DeviceLifecycle,
  DeviceSessions,
  eventDocument,
  EventSink,
  HistoryApart,
  NodeBus,
  Products,
  SceneAction,
  SceneExtensions,
  Uplink
} from "@device-cloud/core"
export type { DeviceProver } from "@device-cloud/core"
export { Authorization, Envelope, failure, ManagementApi } from "@device-cloud/http"
export * as PlatformNode from "@device-cloud/platform-node"
export * as StoragePg from "@device-cloud/storage-pg"
export { MeshStoreContract } from "@device-cloud/testing/contracts"
export { Effect, Exit, Layer, Option, Redacted, Schema } from "effect"
export { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"

/** A database, and the credentials of services. */
export declare const url: Redacted.Redacted
export declare const credential: Redacted.Redacted
export declare const accessKeyId: string
export declare const secretAccessKey: Redacted.Redacted
export declare const region: string

/** The parts of an application. */
export declare const Storage: ReturnType<typeof StoragePg.layer>
export declare const MyIdempotencyStore: { readonly layer: Layer.Layer<IdempotencyStore> }
export declare const MyHistoryStore: { readonly layer: Layer.Layer<HistoryStore> }
export declare const MyMeshStore: { readonly layer: Layer.Layer<MeshStore> }
export declare const HookServer: Layer.Layer<HttpServer.HttpServer>
export declare const WarehouseLayer: NonNullable<ManagementApi.Options["beside"]>["layer"]
export const Shelf = Schema.Struct({ id: Schema.String })

/** What it does with devices. */
export declare const projectId: ProjectId
export declare const draft: ProductDraft
export declare const tokens: DeviceProver
export declare const certificates: DeviceProver
export declare const credentials: ConnectCredentials
export declare const connection: Omit<DeviceConnection, "device">
export declare const params: unknown
export declare const receivedAt: number
export declare const myLog: {
  readonly record: (change: string, ...args: Parameters<LifecycleHandler>) => Effect.Effect<void>
}
export declare const myRows: {
  readonly of: (devices: ReadonlyArray<DeviceIdentity>) => Effect.Effect<ReadonlyArray<string>>
  readonly remove: (rows: ReadonlyArray<string>) => Effect.Effect<void>
}
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
export declare const ledger: { readonly append: (rows: ReadonlyArray<object>) => Effect.Effect<void, EventSinkError> }
