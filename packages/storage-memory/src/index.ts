/**
 * Every Device Cloud store in memory: for tests, development, and programs that
 * keep nothing.
 *
 * {@link layer} is the whole storage. To use another implementation of a store,
 * provide it over the storage; it wins:
 *
 * ```ts
 * const Storage = MyBindings.layer.pipe(Layer.provideMerge(StorageMemory.layer))
 * ```
 *
 * Each store is also a layer of its own, on {@link layerTables}, for example for
 * an application that keeps only history in memory:
 *
 * ```ts
 * const History = StorageMemory.layerHistoryStore.pipe(Layer.provide(StorageMemory.layerTables))
 * ```
 *
 * Several nodes in one process share the stores; each has its own place among the
 * nodes ({@link layerNode}):
 *
 * ```ts
 * const Node = Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode)))
 * ```
 *
 * What can be replaced, and what it takes:
 *
 * - **Alone.** No other store, but `QuotaStore`, reads or writes the data of `AccessKeyStore` (with `BrowserSessionStore`),
 *   `AuditStore`, `BindingStore`, `CertificateStore`, `CodecStore`, `ConfigurationStore`, `ConnectRefusalStore`, `FeedReaderStore`, `IdempotencyStore`, `MeshStore`, `ReplayStore`,
 *   `SubscriptionStore`, `ThingModelStore`, `TopologyStore`, `TraceStore`, `TroubleStore`, `WebhookKeyStore`, `NodeBus` and `StoreHealth`, except to remove what belongs to
 *   a device, a product or a project that is removed. A store that lives elsewhere
 *   removes it itself (`DeviceLifecycle` tells it about devices). `QuotaStore` counts access keys and
 *   subscriptions here: their quotas do not limit those that are elsewhere.
 * - **History, with one layer more.** `UplinkStore.commit` writes history itself.
 *   `HistoryApart.layer` or `HistoryFromFeed.layer` of the core writes it to another `HistoryStore` instead.
 *   `HistoryStore` goes by `HistoryRetentionStore`.
 * - **Only together**: `ActivityStore`, `ProjectStore`, `QuotaStore`, `ProductStore`, `DeviceStore`, `DeviceGroupStore`,
 *   `PresenceStore`, `ShadowStore`, `UplinkStore`, `FeedStore`, `CommandStore`, `BulkCommandStore`, `OtaStore`,
 *   `JobStore`, `SceneStore` and `ExecutionStore`. Each of them reads or writes data of the others.
 *
 * What can be used from here while the group is elsewhere: `AuditStore`, `FeedReaderStore`, `HistoryStore`,
 * `IdempotencyStore`, `ReplayStore`, `NodeBus` and `StoreHealth`. The other stores refuse data of
 * projects, products and devices that their tables do not have.
 */
import type { DeviceCloud, StoreHealth } from "@device-cloud/core"
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
import * as ConnectRefusalStore from "./ConnectRefusalStore.ts"
import * as ConfigurationStore from "./ConfigurationStore.ts"
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
import * as OtaStore from "./OtaStore.ts"
import * as PresenceStore from "./PresenceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import * as ReplayStore from "./ReplayStore.ts"
import * as QuotaStore from "./QuotaStore.ts"
import * as SceneStore from "./SceneStore.ts"
import * as ShadowStore from "./ShadowStore.ts"
import * as Health from "./StoreHealth.ts"
import { Tables } from "./Tables.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"
import * as ThingModelStore from "./ThingModelStore.ts"
import * as TopologyStore from "./TopologyStore.ts"
import * as TraceStore from "./TraceStore.ts"
import * as TroubleStore from "./TroubleStore.ts"
import * as UplinkStore from "./UplinkStore.ts"
import * as WebhookKeyStore from "./WebhookKeyStore.ts"

export type { Tables } from "./Tables.ts"

export { layer as layerAccessKeyStore } from "./AccessKeyStore.ts"
export { layer as layerActivityStore } from "./ActivityStore.ts"
export { layer as layerAuditStore } from "./AuditStore.ts"
export { layer as layerBindingStore } from "./BindingStore.ts"
export { layer as layerBrowserSessionStore } from "./BrowserSessionStore.ts"
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
export { layer as layerNodeBus, layerNode, type NodeNetwork } from "./NodeBus.ts"
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
export { layer as layerTraceStore } from "./TraceStore.ts"
export { layer as layerTroubleStore } from "./TroubleStore.ts"
export { layer as layerUplinkStore } from "./UplinkStore.ts"
export { layer as layerWebhookKeyStore } from "./WebhookKeyStore.ts"

/** Empty tables. Stores that are built together share them; `Layer.fresh` makes others. */
export const layerTables: Layer.Layer<Tables> = Tables.layer

/** The stores on empty tables of their own, wherever the layer is built. */
export const layer: Layer.Layer<DeviceCloud.Stores | StoreHealth | NodeBus.NodeNetwork> = Layer.mergeAll(
  AccessKeyStore.layer,
  ActivityStore.layer,
  AuditStore.layer,
  BindingStore.layer,
  BrowserSessionStore.layer,
  BulkCommandStore.layer,
  CertificateStore.layer,
  CodecStore.layer,
  CommandStore.layer,
  ConnectRefusalStore.layer,
  ConfigurationStore.layer,
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
  OtaStore.layer,
  PresenceStore.layer,
  ProductStore.layer,
  ProjectStore.layer,
  ReplayStore.layer,
  QuotaStore.layer,
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
).pipe(Layer.provide(Tables.layer))
