/**
 * The whole cloud: all services, wired once.
 */
import { type Context, Layer } from "effect"
import { ActivityStore } from "./activity/ActivityStore.ts"
import { Troubles } from "./activity/Troubles.ts"
import { TroubleStore } from "./activity/TroubleStore.ts"
import { ProjectActivity } from "./activity/ProjectActivity.ts"
import { Bindings } from "./provisioning/Bindings.ts"
import { BindingStore } from "./provisioning/BindingStore.ts"
import { BleIdentities } from "./provisioning/BleIdentities.ts"
import * as AuditedStores from "./AuditedStores.ts"
import { AuditLog } from "./audit/AuditLog.ts"
import { AuditStore } from "./audit/AuditStore.ts"
import { BulkCommands } from "./bulk/BulkCommands.ts"
import { BulkCommandStore } from "./bulk/BulkCommandStore.ts"
import * as BulkTurns from "./bulk/BulkTurns.ts"
import { CertificateAuthorities } from "./certificate/CertificateAuthorities.ts"
import { Certificates } from "./certificate/Certificates.ts"
import { CertificateStore } from "./certificate/CertificateStore.ts"
import { HeldCertificates } from "./certificate/HeldCertificates.ts"
import { X509 } from "./certificate/X509.ts"
import { CodecCache } from "./codec/CodecCache.ts"
import { SharedCounts } from "./cluster/SharedCounts.ts"
import { Codecs } from "./codec/Codecs.ts"
import { CodecStore } from "./codec/CodecStore.ts"
import { Broadcasts } from "./command/Broadcasts.ts"
import { CommandAnswers } from "./command/CommandAnswers.ts"
import { CommandDelivery } from "./command/CommandDelivery.ts"
import * as CommandExpiry from "./command/CommandExpiry.ts"
import { Commands } from "./command/Commands.ts"
import { CommandStore } from "./command/CommandStore.ts"
import { Batches } from "./device/Batches.ts"
import { Configurations } from "./configuration/Configurations.ts"
import { ConfigurationStore } from "./configuration/ConfigurationStore.ts"
import { DeviceLifecycle } from "./device/DeviceLifecycle.ts"
import { Devices } from "./device/Devices.ts"
import { DeviceStore } from "./device/DeviceStore.ts"
import { PresenceHistory } from "./connection/PresenceHistory.ts"
import { Presence } from "./connection/Presence.ts"
import { PresenceStore } from "./connection/PresenceStore.ts"
import { FeedStore } from "./feed/FeedStore.ts"
import { Feed } from "./feed/Feed.ts"
import * as FeedRetention from "./FeedRetention.ts"
import * as LifecycleEvents from "./feed/LifecycleEvents.ts"
import { FeedReaderStore } from "./feed/FeedReaderStore.ts"
import { DeviceGroups } from "./group/DeviceGroups.ts"
import { DeviceGroupStore } from "./group/DeviceGroupStore.ts"
import { Idempotency } from "./idempotency/Idempotency.ts"
import { IdempotencyStore } from "./idempotency/IdempotencyStore.ts"
import * as JobMethods from "./job/JobMethods.ts"
import { JobDelivery } from "./job/JobDelivery.ts"
import { Jobs } from "./job/Jobs.ts"
import { JobStore } from "./job/JobStore.ts"
import * as GuardedLoggers from "./kernel/GuardedLoggers.ts"
import { Identifiers } from "./kernel/Identifiers.ts"
import { KnownAddresses } from "./kernel/KnownAddresses.ts"
import * as MeshMethods from "./mesh/MeshMethods.ts"
import { MeshNetworks } from "./mesh/MeshNetworks.ts"
import { MeshStore } from "./mesh/MeshStore.ts"
import { DeviceSessions } from "./connection/DeviceSessions.ts"
import { DeviceMethods } from "./uplink/DeviceMethods.ts"
import * as RawMethods from "./uplink/methods/RawMethods.ts"
import { Uplink } from "./uplink/Uplink.ts"
import * as UplinkMethods from "./uplink/UplinkMethods.ts"
import { UplinkRates } from "./uplink/UplinkRates.ts"
import { UplinkStore } from "./uplink/UplinkStore.ts"
import * as DueUpgrades from "./ota/device/DueUpgrades.ts"
import * as UpgradeLifecycle from "./ota/device/UpgradeLifecycle.ts"
import * as UpgradeMethods from "./ota/device/UpgradeMethods.ts"
import { UpgradePace } from "./ota/device/UpgradePace.ts"
import { UpgradePush } from "./ota/device/UpgradePush.ts"
import { Upgrades } from "./ota/device/Upgrades.ts"
import { UpgradeSteps } from "./ota/device/UpgradeSteps.ts"
import { FirmwareBlocks } from "./ota/device/FirmwareBlocks.ts"
import { FirmwareFiles } from "./ota/firmware/FirmwareFiles.ts"
import { Firmwares } from "./ota/firmware/Firmwares.ts"
import { ImageSignatures } from "./ota/firmware/ImageSignatures.ts"
import { SigningKeys } from "./ota/firmware/SigningKeys.ts"
import { UpgradeTasks } from "./ota/task/UpgradeTasks.ts"
import { OtaStore } from "./ota/task/OtaStore.ts"
import { Nodes } from "./overview/Nodes.ts"
import { ProjectOverview } from "./overview/ProjectOverview.ts"
import { Products } from "./product/Products.ts"
import { ProductStore } from "./product/ProductStore.ts"
import { AccessKeys } from "./project/AccessKeys.ts"
import { AccessKeyStore } from "./project/AccessKeyStore.ts"
import { BrowserSessions } from "./project/BrowserSessions.ts"
import { BrowserSessionStore } from "./project/BrowserSessionStore.ts"
import { Quotas } from "./project/Quotas.ts"
import { QuotaStore } from "./project/QuotaStore.ts"
import { Projects } from "./project/Projects.ts"
import { ProjectStore } from "./project/ProjectStore.ts"
import { SceneActions } from "./scene/execution/SceneActions.ts"
import * as BacklogWatch from "./scene/execution/BacklogWatch.ts"
import * as SceneRunner from "./scene/execution/SceneRunner.ts"
import { ExecutionStore } from "./scene/execution/ExecutionStore.ts"
import * as SceneTimers from "./scene/execution/SceneTimers.ts"
import { WebhookKeyStore } from "./scene/execution/WebhookKeyStore.ts"
import { Scenes } from "./scene/Scenes.ts"
import { SceneStore } from "./scene/definition/SceneStore.ts"
import { SceneBacklog } from "./scene/matching/SceneBacklog.ts"
import { SceneTriggers } from "./scene/matching/SceneTriggers.ts"
import { WebhookClient } from "./scene/execution/WebhookClient.ts"
import { WebhookDelivery } from "./scene/execution/WebhookDelivery.ts"
import { WebhookPace } from "./scene/execution/WebhookPace.ts"
import { WebhookSigning } from "./scene/execution/WebhookSigning.ts"
import * as RecordRetention from "./RecordRetention.ts"
import { Shadows } from "./shadow/Shadows.ts"
import { ShadowStore } from "./shadow/ShadowStore.ts"
import { DeviceAuthenticator } from "./provisioning/DeviceAuthenticator.ts"
import { ConnectRefusals } from "./provisioning/ConnectRefusals.ts"
import { ConnectRefusalStore } from "./provisioning/ConnectRefusalStore.ts"
import { Provisioning } from "./provisioning/Provisioning.ts"
import { ReplayStore } from "./provisioning/ReplayStore.ts"
import { SignatureGuard } from "./provisioning/SignatureGuard.ts"
import { Mac } from "./kernel/Mac.ts"
import { Randomness } from "./kernel/Randomness.ts"
import { History } from "./history/History.ts"
import { HistoryRetention } from "./history/HistoryRetention.ts"
import { HistoryRetentionStore } from "./history/HistoryRetentionStore.ts"
import { HistoryStore } from "./history/HistoryStore.ts"
import * as GatewayMethods from "./gateway/GatewayMethods.ts"
import { SubDeviceSessions } from "./gateway/SubDeviceSessions.ts"
import { Topologies } from "./gateway/Topologies.ts"
import { TopologyStore } from "./gateway/TopologyStore.ts"
import { ThingModels } from "./thing-model/ThingModels.ts"
import { ThingModelStore } from "./thing-model/ThingModelStore.ts"
import { ModelCache } from "./thing-model/ModelCache.ts"
import { SubscriptionReader } from "./subscription/SubscriptionReader.ts"
import { FilteredEvents } from "./subscription/FilteredEvents.ts"
import * as SubscriptionMetrics from "./subscription/SubscriptionMetrics.ts"
import * as SubscriptionPush from "./subscription/SubscriptionPush.ts"
import { SubscriptionSteps } from "./subscription/SubscriptionSteps.ts"
import { Subscriptions } from "./subscription/Subscriptions.ts"
import { SubscriptionStore } from "./subscription/SubscriptionStore.ts"
import { NodeBus } from "./cluster/NodeBus.ts"
import { TraceRecorder } from "./trace/TraceRecorder.ts"
import { Traces } from "./trace/Traces.ts"
import { TraceStore } from "./trace/TraceStore.ts"
import { UplinkTrace } from "./uplink/UplinkTrace.ts"
import * as SessionTrace from "./connection/SessionTrace.ts"
import type { StoreError } from "./kernel/StoreError.ts"

/** The services that the cloud offers. */
export const services = [
  AccessKeys,
  AuditLog,
  Batches,
  Bindings,
  BleIdentities,
  Broadcasts,
  BrowserSessions,
  BulkCommands,
  CertificateAuthorities,
  Certificates,
  Codecs,
  Commands,
  Configurations,
  ConnectRefusals,
  DeviceAuthenticator,
  DeviceGroups,
  DeviceLifecycle,
  DeviceMethods,
  DeviceSessions,
  Devices,
  Feed,
  Firmwares,
  SigningKeys,
  History,
  HistoryRetention,
  Idempotency,
  Jobs,
  KnownAddresses,
  MeshNetworks,
  Nodes,
  PresenceHistory,
  Products,
  ProjectActivity,
  ProjectOverview,
  Projects,
  Provisioning,
  Quotas,
  Scenes,
  Shadows,
  SharedCounts,
  SubDeviceSessions,
  SubscriptionReader,
  Subscriptions,
  ThingModels,
  Topologies,
  TraceRecorder,
  Traces,
  Troubles,
  Upgrades,
  UpgradeTasks,
  Uplink,
  UplinkRates,
  UplinkTrace,
  WebhookSigning
] as const

/** The services that the cloud offers. */
export type DeviceCloud = Context.Service.Identifier<(typeof services)[number]>

/** The ports that storage adapters provide. */
export const stores = [
  AccessKeyStore,
  ActivityStore,
  AuditStore,
  BindingStore,
  BrowserSessionStore,
  BulkCommandStore,
  CertificateStore,
  CodecStore,
  CommandStore,
  ConfigurationStore,
  ConnectRefusalStore,
  DeviceGroupStore,
  DeviceStore,
  ExecutionStore,
  FeedReaderStore,
  FeedStore,
  IdempotencyStore,
  JobStore,
  MeshStore,
  NodeBus,
  OtaStore,
  PresenceStore,
  ProductStore,
  ProjectStore,
  QuotaStore,
  ReplayStore,
  SceneStore,
  ShadowStore,
  HistoryRetentionStore,
  HistoryStore,
  SubscriptionStore,
  ThingModelStore,
  TopologyStore,
  TraceStore,
  TroubleStore,
  UplinkStore,
  WebhookKeyStore
] as const

/** The ports that storage adapters provide. */
export type Stores = Context.Service.Identifier<(typeof stores)[number]>

/** The ports that a platform adapter provides. */
export const platform = [ImageSignatures, Mac, Randomness, WebhookClient, X509] as const

/** The ports that a platform adapter provides. */
export type Platform = Context.Service.Identifier<(typeof platform)[number]>

/** The feed, and the registries that features fill: hooks of the lifecycle and device methods. */
const registries = Layer.mergeAll(DeviceLifecycle.layer, DeviceMethods.layerEmpty).pipe(Layer.provideMerge(Feed.layer))

/** Features that fill the registries or run in the background, and offer no service. */
const declarations = Layer.mergeAll(
  LifecycleEvents.layer,
  FeedRetention.layer,
  CommandExpiry.layer,
  BulkTurns.layer,
  UplinkMethods.layer,
  RawMethods.layer,
  GatewayMethods.layer,
  MeshMethods.layer,
  JobMethods.layer.pipe(Layer.provide(JobDelivery.layer)),
  BacklogWatch.layer,
  SceneRunner.layer,
  SceneTimers.layer,
  RecordRetention.layer,
  SessionTrace.layer
)

/** Firmware and upgrades: four services, and what is declared for them. */
const upgrades = Layer.mergeAll(DueUpgrades.layer, UpgradeLifecycle.layer, UpgradeMethods.layer).pipe(
  Layer.provideMerge(Upgrades.layer),
  Layer.provide(Layer.mergeAll(FirmwareBlocks.layer, UpgradePace.layer, UpgradePush.layer)),
  Layer.provide(UpgradeSteps.layer),
  Layer.provideMerge(UpgradeTasks.layer),
  Layer.provideMerge(Layer.mergeAll(Firmwares.layer, SigningKeys.layer)),
  Layer.provide(FirmwareFiles.layer)
)

/** Subscriptions and their webhooks. */
const subscriptions = Layer.mergeAll(Subscriptions.layer, SubscriptionMetrics.layer, SubscriptionPush.layer).pipe(
  Layer.provideMerge(SubscriptionReader.layer),
  Layer.provide(Layer.mergeAll(FilteredEvents.layer, SubscriptionSteps.layer))
)

/** How webhooks are sent. */
const webhooks = Layer.provideMerge(WebhookDelivery.layer, WebhookPace.layer)

/** Who a device is, and what it proves that with. */
const identification = Layer.mergeAll(
  CertificateAuthorities.layer,
  Certificates.layer,
  ConnectRefusals.layer,
  DeviceAuthenticator.layer,
  Provisioning.layer
).pipe(Layer.provide(HeldCertificates.layer))

/**
 * All services of the cloud. Needs stores and a platform. Provide the layer once:
 * a second copy would not see the connections of the first.
 */
export const layer: Layer.Layer<DeviceCloud, StoreError, Stores | Platform> = Layer.mergeAll(
  declarations,
  Batches.layer,
  Bindings.layer,
  BleIdentities.layer,
  Broadcasts.layer,
  BrowserSessions.layer,
  BulkCommands.layer,
  Codecs.layer,
  Configurations.layer,
  History.layer,
  HistoryRetention.layer,
  Idempotency.layer,
  Jobs.layer,
  Nodes.layer,
  PresenceHistory.layer,
  ProjectOverview.layer,
  Projects.layer,
  Scenes.layer,
  Shadows.layer,
  SubDeviceSessions.layer,
  subscriptions,
  ThingModels.layer.pipe(Layer.provide(Shadows.layerReportedValues)),
  Topologies.layer,
  Traces.layer,
  UplinkTrace.layer
).pipe(
  Layer.provide(Layer.provideMerge(SceneActions.layer, webhooks)),
  Layer.provideMerge(Layer.mergeAll(Commands.layer, WebhookSigning.layer)),
  Layer.provide(CommandDelivery.layer),
  Layer.provideMerge(Uplink.layer),
  Layer.provide(CommandAnswers.layer),
  Layer.provideMerge(UplinkRates.layer),
  Layer.provide(Topologies.layerDirectory),
  Layer.provideMerge(identification),
  Layer.provideMerge(Layer.mergeAll(upgrades, MeshNetworks.layer)),
  Layer.provide(Layer.mergeAll(ModelCache.layer, CodecCache.layer)),
  Layer.provideMerge(Devices.layer),
  Layer.provide(SignatureGuard.layer),
  Layer.provideMerge(Layer.mergeAll(Products.layer, DeviceSessions.layer)),
  Layer.provide(Presence.layer),
  Layer.provide(SceneTriggers.layerReactions),
  Layer.provide(Layer.provideMerge(SceneTriggers.layer, SceneBacklog.layer)),
  Layer.provideMerge(
    Layer.mergeAll(AccessKeys.layer, AuditLog.layer, DeviceGroups.layer, KnownAddresses.layer, registries)
  ),
  Layer.provideMerge(
    Layer.mergeAll(ProjectActivity.layer, Troubles.layer, Quotas.layer, SharedCounts.layer, TraceRecorder.layer)
  ),
  Layer.provide(AuditedStores.layer),
  Layer.provide(Layer.merge(Identifiers.layer, GuardedLoggers.layer))
)
