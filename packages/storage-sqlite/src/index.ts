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
import * as UplinkStore from "./UplinkStore.ts"
import * as WebhookKeyStore from "./WebhookKeyStore.ts"
import { Secrets } from "./Secrets.ts"
import { type Options, Sqlite } from "./Sqlite.ts"
import type { DatabaseError } from "./SqliteErrors.ts"
import * as Health from "./StoreHealth.ts"

export type { Options } from "./Sqlite.ts"
export { DatabaseError } from "./SqliteErrors.ts"

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
  UplinkStore.layer,
  WebhookKeyStore.layer
)

/** The stores, and objects, in the file at `filename`. Fails with the name of the file if another process uses it. */
export const layer = (
  options: Options
): Layer.Layer<DeviceCloud.Stores | StoreHealth | ObjectStoreService, DatabaseError | KeyRingError, KeyRing> =>
  stores.pipe(Layer.provide(Secrets.layer), Layer.provide(Sqlite.layer(options)))
