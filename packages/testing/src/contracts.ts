/**
 * The laws of the store ports as test suites for Vitest. Every storage adapter
 * runs all of them.
 */
import type { DeviceCloud } from "@device-cloud/core"
import type { Layer } from "effect"
import * as AccessKeyStoreContract from "./contracts/AccessKeyStoreContract.ts"
import * as ActivityStoreContract from "./contracts/ActivityStoreContract.ts"
import * as AuditStoreContract from "./contracts/AuditStoreContract.ts"
import * as BindingStoreContract from "./contracts/BindingStoreContract.ts"
import * as BrowserSessionStoreContract from "./contracts/BrowserSessionStoreContract.ts"
import * as BulkCommandStoreContract from "./contracts/BulkCommandStoreContract.ts"
import * as CertificateStoreContract from "./contracts/CertificateStoreContract.ts"
import * as CodecStoreContract from "./contracts/CodecStoreContract.ts"
import * as CommandStoreContract from "./contracts/CommandStoreContract.ts"
import * as ConnectRefusalStoreContract from "./contracts/ConnectRefusalStoreContract.ts"
import * as ConfigurationStoreContract from "./contracts/ConfigurationStoreContract.ts"
import * as DeviceGroupStoreContract from "./contracts/DeviceGroupStoreContract.ts"
import * as DeviceStoreContract from "./contracts/DeviceStoreContract.ts"
import * as ExecutionStoreContract from "./contracts/ExecutionStoreContract.ts"
import * as FeedReaderStoreContract from "./contracts/FeedReaderStoreContract.ts"
import * as FeedStoreContract from "./contracts/FeedStoreContract.ts"
import * as IdempotencyStoreContract from "./contracts/IdempotencyStoreContract.ts"
import * as JobStoreContract from "./contracts/JobStoreContract.ts"
import * as MeshStoreContract from "./contracts/MeshStoreContract.ts"
import * as NodeBusContract from "./contracts/NodeBusContract.ts"
import * as ObjectStoreContract from "./contracts/ObjectStoreContract.ts"
import * as OtaProgressContract from "./contracts/OtaProgressContract.ts"
import * as OtaStageContract from "./contracts/OtaStageContract.ts"
import * as OtaStoreContract from "./contracts/OtaStoreContract.ts"
import * as PresenceStoreContract from "./contracts/PresenceStoreContract.ts"
import * as ProductStoreContract from "./contracts/ProductStoreContract.ts"
import * as ProjectStoreContract from "./contracts/ProjectStoreContract.ts"
import * as SceneBudgetContract from "./contracts/SceneBudgetContract.ts"
import * as ReplayStoreContract from "./contracts/ReplayStoreContract.ts"
import * as QuotaStoreContract from "./contracts/QuotaStoreContract.ts"
import * as SceneStoreContract from "./contracts/SceneStoreContract.ts"
import * as ShadowStoreContract from "./contracts/ShadowStoreContract.ts"
import * as HistoryRetentionStoreContract from "./contracts/HistoryRetentionStoreContract.ts"
import * as HistoryStoreContract from "./contracts/HistoryStoreContract.ts"
import * as SubscriptionStoreContract from "./contracts/SubscriptionStoreContract.ts"
import * as ThingModelStoreContract from "./contracts/ThingModelStoreContract.ts"
import * as TroubleStoreContract from "./contracts/TroubleStoreContract.ts"
import * as TopologyStoreContract from "./contracts/TopologyStoreContract.ts"
import * as TraceStoreContract from "./contracts/TraceStoreContract.ts"
import * as WebhookKeyStoreContract from "./contracts/WebhookKeyStoreContract.ts"

export {
  /** Stores a device with a product and a project of its own. */
  insertDevice,
  /** Makes a property set for a device. */
  newCommand
} from "./contracts/Samples.ts"

export {
  AccessKeyStoreContract,
  ActivityStoreContract,
  AuditStoreContract,
  BindingStoreContract,
  BrowserSessionStoreContract,
  BulkCommandStoreContract,
  CertificateStoreContract,
  CodecStoreContract,
  CommandStoreContract,
  ConfigurationStoreContract,
  ConnectRefusalStoreContract,
  DeviceGroupStoreContract,
  DeviceStoreContract,
  ExecutionStoreContract,
  FeedReaderStoreContract,
  FeedStoreContract,
  HistoryRetentionStoreContract,
  HistoryStoreContract,
  IdempotencyStoreContract,
  JobStoreContract,
  MeshStoreContract,
  NodeBusContract,
  ObjectStoreContract,
  OtaProgressContract,
  OtaStageContract,
  OtaStoreContract,
  PresenceStoreContract,
  ProductStoreContract,
  ProjectStoreContract,
  QuotaStoreContract,
  ReplayStoreContract,
  SceneBudgetContract,
  SceneStoreContract,
  ShadowStoreContract,
  SubscriptionStoreContract,
  ThingModelStoreContract,
  TopologyStoreContract,
  TraceStoreContract,
  TroubleStoreContract,
  WebhookKeyStoreContract
}

/** Runs the contract of every store but `NodeBus`, whose contract starts nodes of a network. */
export const suites = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  AccessKeyStoreContract.suite(name, stores)
  ActivityStoreContract.suite(name, stores)
  AuditStoreContract.suite(name, stores)
  BindingStoreContract.suite(name, stores)
  BrowserSessionStoreContract.suite(name, stores)
  BulkCommandStoreContract.suite(name, stores)
  CertificateStoreContract.suite(name, stores)
  CodecStoreContract.suite(name, stores)
  CommandStoreContract.suite(name, stores)
  ConnectRefusalStoreContract.suite(name, stores)
  ConfigurationStoreContract.suite(name, stores)
  DeviceGroupStoreContract.suite(name, stores)
  DeviceStoreContract.suite(name, stores)
  ExecutionStoreContract.suite(name, stores)
  FeedReaderStoreContract.suite(name, stores)
  FeedStoreContract.suite(name, stores)
  IdempotencyStoreContract.suite(name, stores)
  JobStoreContract.suite(name, stores)
  MeshStoreContract.suite(name, stores)
  OtaProgressContract.suite(name, stores)
  OtaStageContract.suite(name, stores)
  OtaStoreContract.suite(name, stores)
  PresenceStoreContract.suite(name, stores)
  ProductStoreContract.suite(name, stores)
  ProjectStoreContract.suite(name, stores)
  SceneBudgetContract.suite(name, stores)
  ReplayStoreContract.suite(name, stores)
  QuotaStoreContract.suite(name, stores)
  SceneStoreContract.suite(name, stores)
  ShadowStoreContract.suite(name, stores)
  HistoryRetentionStoreContract.suite(name, stores)
  HistoryStoreContract.suite(name, stores)
  HistoryStoreContract.suiteOfCommits(name, stores)
  SubscriptionStoreContract.suite(name, stores)
  ThingModelStoreContract.suite(name, stores)
  TroubleStoreContract.suite(name, stores)
  TopologyStoreContract.suite(name, stores)
  TraceStoreContract.suite(name, stores)
  WebhookKeyStoreContract.suite(name, stores)
}
