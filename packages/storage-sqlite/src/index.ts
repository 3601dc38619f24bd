/**
 * Every Device Cloud store in one SQLite file, for one small machine.
 *
 * {@link layer} is the whole storage. It seals secrets in the file under the keys
 * of a `KeyRing`: `NodeKeyRing.layerFile(path)` of `platform-node` is one.
 *
 * ```ts
 * const Storage = StorageSqlite.layer({ filename: "./device-cloud.sqlite" }).pipe(
 *   Layer.provide(NodeKeyRing.layerFile("./secrets-key"))
 * )
 * ```
 *
 * To use another implementation of a store, provide it over the storage; it wins:
 *
 * ```ts
 * const Other = MyBindings.layer.pipe(Layer.provideMerge(Storage))
 * ```
 *
 * Each store is also a layer of its own, on {@link layerFile}, so that an application can
 * take some stores from here and the others from elsewhere:
 *
 * ```ts
 * const Mixed = StorageSqlite.layerIdempotencyStore.pipe(
 *   Layer.provide(StorageSqlite.layerFile({ filename: "./requests.sqlite" })),
 *   Layer.provide(NodeKeyRing.layerFile("./secrets-key")),
 *   Layer.provideMerge(StorageMemory.layer)
 * )
 * ```
 *
 * `AuditStore`, `FeedReaderStore`, `HistoryStore`, `IdempotencyStore`, `ObjectStore`, `ReplayStore`, `NodeBus` and
 * `StoreHealth` can be used from here while projects, products and devices are elsewhere. The tables of all other stores
 * have foreign keys to them. `HistoryStore` needs one layer more, as on any storage: `HistoryApart.layer` or
 * `HistoryFromFeed.layer` of the core.
 */
import type {
  DeviceCloud,
  KeyRing,
  KeyRingError,
  ObjectStore as ObjectStoreService,
  StoreHealth
} from "@device-cloud/core"
import { Layer } from "effect"
import * as AccessKeyStore from "./AccessKeyStore.ts"
import * as ActivityStore from "./ActivityStore.ts"
import * as AuditStore from "./AuditStore.ts"
import * as BindingStore from "./BindingStore.ts"
import * as BrowserSessionStore from "./BrowserSessionStore.ts"
import * as BulkCommandStore from "./BulkCommandStore.ts"
import * as CertificateStore from "./CertificateStore.ts"
import * as CodecStore from "./CodecStore.ts"
import * as CommandStore from "./CommandStore.ts"
import * as ConfigurationStore from "./ConfigurationStore.ts"
import * as ConnectRefusalStore from "./ConnectRefusalStore.ts"
import * as DeviceGroupStore from "./DeviceGroupStore.ts"
import * as DeviceStore from "./DeviceStore.ts"
import * as ExecutionStore from "./ExecutionStore.ts"
import * as FeedReaderStore from "./FeedReaderStore.ts"
import * as FeedStore from "./FeedStore.ts"
import * as HistoryRetentionStore from "./HistoryRetentionStore.ts"
import * as HistoryStore from "./HistoryStore.ts"
import * as IdempotencyStore from "./IdempotencyStore.ts"
import * as JobStore from "./JobStore.ts"
import * as MeshStore from "./MeshStore.ts"
import * as NodeBus from "./NodeBus.ts"
import * as ObjectStore from "./ObjectStore.ts"
import * as OtaStore from "./OtaStore.ts"
import * as PresenceStore from "./PresenceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import * as QuotaStore from "./QuotaStore.ts"
import * as ReplayStore from "./ReplayStore.ts"
import * as SceneStore from "./SceneStore.ts"
import * as ShadowStore from "./ShadowStore.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"
import * as ThingModelStore from "./ThingModelStore.ts"
import * as TopologyStore from "./TopologyStore.ts"
import * as TraceStore from "./TraceStore.ts"
import * as TroubleStore from "./TroubleStore.ts"
import * as UplinkStore from "./UplinkStore.ts"
import * as WebhookKeyStore from "./WebhookKeyStore.ts"
import { Secrets } from "./Secrets.ts"
import { type Options, Sqlite } from "./Sqlite.ts"
import type { DatabaseError } from "./SqliteErrors.ts"
import * as Health from "./StoreHealth.ts"

export type { Secrets } from "./Secrets.ts"
export type { Options, Sqlite } from "./Sqlite.ts"
export { DatabaseError } from "./SqliteErrors.ts"

export { layer as layerAccessKeyStore } from "./AccessKeyStore.ts"
export { layer as layerAuditStore } from "./AuditStore.ts"
export { layer as layerBindingStore } from "./BindingStore.ts"
export { layer as layerBulkCommandStore } from "./BulkCommandStore.ts"
export { layer as layerCertificateStore } from "./CertificateStore.ts"
export { layer as layerCodecStore } from "./CodecStore.ts"
export { layer as layerCommandStore } from "./CommandStore.ts"
export { layer as layerConfigurationStore } from "./ConfigurationStore.ts"
export { layer as layerConnectRefusalStore } from "./ConnectRefusalStore.ts"
export { layer as layerDeviceGroupStore } from "./DeviceGroupStore.ts"
export { layer as layerDeviceStore } from "./DeviceStore.ts"
export { layer as layerExecutionStore } from "./ExecutionStore.ts"
export { layer as layerFeedReaderStore } from "./FeedReaderStore.ts"
export { layer as layerFeedStore } from "./FeedStore.ts"
export { layer as layerHistoryRetentionStore } from "./HistoryRetentionStore.ts"
export { layer as layerHistoryStore } from "./HistoryStore.ts"
export { layer as layerIdempotencyStore } from "./IdempotencyStore.ts"
export { layer as layerJobStore } from "./JobStore.ts"
export { layer as layerMeshStore } from "./MeshStore.ts"
export { layer as layerNodeBus } from "./NodeBus.ts"
export { layer as layerObjectStore } from "./ObjectStore.ts"
export { layer as layerOtaStore } from "./OtaStore.ts"
export { layer as layerPresenceStore } from "./PresenceStore.ts"
export { layer as layerProductStore } from "./ProductStore.ts"
export { layer as layerProjectStore } from "./ProjectStore.ts"
export { layer as layerQuotaStore } from "./QuotaStore.ts"
export { layer as layerReplayStore } from "./ReplayStore.ts"
export { layer as layerSceneStore } from "./SceneStore.ts"
export { layer as layerShadowStore } from "./ShadowStore.ts"
export { layer as layerStoreHealth } from "./StoreHealth.ts"
export { layer as layerSubscriptionStore } from "./SubscriptionStore.ts"
export { layer as layerThingModelStore } from "./ThingModelStore.ts"
export { layer as layerTopologyStore } from "./TopologyStore.ts"
export { layer as layerUplinkStore } from "./UplinkStore.ts"
export { layer as layerWebhookKeyStore } from "./WebhookKeyStore.ts"

const stores = Layer.mergeAll(
  AccessKeyStore.layer,
  ActivityStore.layer,
  AuditStore.layer,
  BindingStore.layer,
  BrowserSessionStore.layer,
  BulkCommandStore.layer,
  CertificateStore.layer,
  CodecStore.layer,
  CommandStore.layer,
  ConfigurationStore.layer,
  ConnectRefusalStore.layer,
  DeviceGroupStore.layer,
  DeviceStore.layer,
  ExecutionStore.layer,
  FeedReaderStore.layer,
  FeedStore.layer,
  HistoryRetentionStore.layer,
  HistoryStore.layer,
  IdempotencyStore.layer,
  JobStore.layer,
  MeshStore.layer,
  NodeBus.layer,
  ObjectStore.layer,
  OtaStore.layer,
  PresenceStore.layer,
  ProductStore.layer,
  ProjectStore.layer,
  QuotaStore.layer,
  ReplayStore.layer,
  SceneStore.layer,
  ShadowStore.layer,
  Health.layer,
  SubscriptionStore.layer,
  ThingModelStore.layer,
  TopologyStore.layer,
  TraceStore.layer,
  TroubleStore.layer,
  UplinkStore.layer,
  WebhookKeyStore.layer
)

/**
 * An open file, for the layers of single stores. Brings its tables up to date first. Fails with the name of the file if
 * another process uses it.
 */
export const layerFile = (
  options: Options
): Layer.Layer<Sqlite | Secrets, DatabaseError | KeyRingError, KeyRing> =>
  Secrets.layer.pipe(Layer.provideMerge(Sqlite.layer(options)))

/** The stores, and objects, in the file at `filename`. Fails as {@link layerFile} does. */
export const layer = (
  options: Options
): Layer.Layer<DeviceCloud.Stores | StoreHealth | ObjectStoreService, DatabaseError | KeyRingError, KeyRing> =>
  stores.pipe(Layer.provide(layerFile(options)))
