/**
 * The data of all stores: one object is the whole database.
 */
import type {
  AccessKey,
  ActivitySum,
  AddSession,
  AuditEntry,
  Batch,
  Binding,
  BrowserSession,
  BulkCommand,
  CertificateAuthority,
  Configuration,
  ConfigurationProgress,
  ConnectRefusal,
  Device,
  DeviceCertificate,
  DeviceDetail,
  DeviceFilter,
  DeviceGroup,
  DeviceId,
  DeviceName,
  EventRecord,
  Job,
  JobTask,
  Json,
  MeshNetwork,
  MeshNode,
  ModelVersion,
  NodeReport,
  Page,
  PageRequest,
  PreviousSecret,
  Product,
  ProductKey,
  Project,
  ProjectId,
  QuotaLimits,
  Rotation,
  Scene,
  SceneId,
  SceneTimer,
  Shadow,
  StoredAnswer,
  StoredCodec,
  StoredSubscription,
  TopologyClaim,
  Trouble,
  WaitingExecution,
  WebhookKeys
} from "@device-cloud/core"
import { matchesFilter } from "@device-cloud/core"
import { Clock, Context, Effect, Layer } from "effect"
import { Executions } from "./Executions.ts"
import { CommandTable } from "./CommandTable.ts"
import { ConnectionTable } from "./ConnectionTable.ts"
import { FeedLog } from "./FeedLog.ts"
import { GatewayTable } from "./GatewayTable.ts"
import type { RingBuffer } from "./RingBuffer.ts"
import type { StoredTrace } from "./TraceStore.ts"

export interface DeviceHistory {
  readonly samples: Map<string, RingBuffer<Json>>
  readonly events: RingBuffer<EventRecord>
}

export interface StoredRequest {
  readonly fingerprint: string
  /** Unix milliseconds. */
  readonly claimedAt: number
  /** Undefined while the first caller works on it. */
  readonly answer: StoredAnswer | undefined
}

export interface StoredAddSession {
  readonly session: AddSession
  /** Unix milliseconds; null while it is open. */
  readonly endedAt: number | null
  readonly members: Set<DeviceId>
}

/** The limits of a project's own, and what is counted for it alone. */
export interface ProjectQuotas {
  readonly limits: Partial<QuotaLimits>
  readonly objectBytes: number
}

/** A job; its status follows from its tasks. */
export interface StoredJob {
  job: Job
  readonly tasks: Map<DeviceId, StoredTask>
  /** When something is to be done about a task, Unix milliseconds. */
  readonly due: Map<DeviceId, number>
}

export interface StoredTask {
  readonly task: JobTask
  /** Whether the device has not been told of the state. */
  readonly isUntold: boolean
}

export interface StoredBulkCommand {
  bulk: Omit<BulkCommand, "status">
  isCancelled: boolean
  /** When its devices last got turns, Unix milliseconds. */
  servedAt: number
  /** How many of its devices have a turn. */
  turns: number
  /** In their order. */
  readonly devices: ReadonlyArray<StoredBulkDevice>
}

export interface StoredBulkDevice {
  readonly deviceId: DeviceId
  readonly deviceName: DeviceName
  /** `to-ask` and `to-cancel` have a turn. */
  state: "to-ask" | "asked" | "refused" | "left-out" | "to-cancel"
  /** Unix milliseconds. */
  claimedUntil: number
  messageId: number | null
  reason: string
}

export interface StoredAuthority {
  readonly authority: CertificateAuthority
  /** Null: the cloud does not have it. */
  readonly privateKey: string | null
  /** When each serial number on the list was revoked, Unix milliseconds. */
  readonly revoked: ReadonlyMap<string, number>
}

/** As the columns of `presence` on PostgreSQL. */
export interface Ownership {
  /** The epoch of the latest connection; 0: there was none. */
  readonly epoch: number
  readonly lastCommand: number
  readonly desiredChanges: number
}

/** Of a device that has had neither. */
export const neverOwned: Ownership = { epoch: 0, lastCommand: 0, desiredChanges: 0 }

export interface Heartbeat {
  /** The latest one, Unix milliseconds. */
  readonly at: number
  /** Since when they have come without a gap, Unix milliseconds. */
  readonly steadySince: number
  /** What the node has said of itself. */
  readonly report?: NodeReport
}

export interface StoredNetwork {
  network: MeshNetwork
  /** In the order in which they were added. */
  readonly nodes: Map<DeviceId, MeshNode>
}

export class Tables extends Context.Service<Tables, {
  readonly projects: Map<ProjectId, Project>
  readonly accessKeys: Map<string, AccessKey>
  /** By hash, in the order in which they began. */
  readonly browserSessions: Map<string, BrowserSession>
  /** The audit log, the oldest entry first. */
  readonly audit: Array<AuditEntry>
  readonly products: Map<ProductKey, Product>
  readonly quotas: Map<ProjectId, ProjectQuotas>
  /** Devices of each project. */
  readonly deviceCounts: Map<ProjectId, number>
  readonly devices: Map<DeviceId, Device>
  /** Device id by `product key/device name`. */
  readonly deviceNames: Map<string, DeviceId>
  readonly shadows: Map<DeviceId, Shadow>
  readonly ledger: CommandTable
  readonly feed: FeedLog
  readonly histories: Map<DeviceId, DeviceHistory>
  /** The versions of each product's model, newest first. */
  readonly models: Map<ProductKey, ReadonlyArray<ModelVersion>>
  /** The versions of each product and device, by its key or id, newest first. */
  readonly configurations: Map<string, ReadonlyArray<Configuration>>
  readonly configurationProgress: Map<DeviceId, ConfigurationProgress>
  /** The version that each device runs of each module. */
  readonly moduleVersions: Map<DeviceId, Readonly<Record<string, string>>>
  readonly codecs: Map<ProductKey, StoredCodec>
  /** How many days products keep history that have days of their own. */
  readonly historyDays: Map<ProductKey, number>
  /** By `project/key`, the oldest claim first. */
  readonly requests: Map<string, StoredRequest>
  /** The current connection of each device that has one. */
  readonly connections: ConnectionTable
  /** Devices that are online without a connection, and until when, Unix milliseconds. */
  readonly sightings: Map<DeviceId, number>
  /** What is known of the owners of each device that has had a connection or a command. */
  readonly ownerships: Map<DeviceId, Ownership>
  readonly heartbeats: Map<string, Heartbeat>
  readonly scenes: Map<SceneId, Scene>
  /** By cron id. */
  readonly timers: Map<string, SceneTimer>
  readonly executions: Executions
  /** Executions that wait for a status to last, by scene, device and minutes. */
  readonly waiting: Map<string, WaitingExecution>
  readonly webhookKeys: Map<ProjectId, WebhookKeys>
  readonly batches: Map<number, { readonly batch: Batch; readonly projectId: ProjectId }>
  readonly bulkCommands: Map<number, StoredBulkCommand>
  readonly deviceGroups: Map<number, DeviceGroup>
  /** The devices that were added to each static group. */
  readonly groupDevices: Map<number, Set<DeviceId>>
  readonly gateways: GatewayTable
  /** Of each sub-device that has had a gateway. */
  readonly topologyClaims: Map<DeviceId, TopologyClaim>
  readonly addSessions: Map<string, StoredAddSession>
  /** Called when a product is removed, by stores that keep data of their own about it. */
  readonly onProductRemoved: Array<(productKey: ProductKey) => void>
  readonly meshNetworks: Map<number, StoredNetwork>
  /** The oldest first. */
  readonly jobs: Map<number, StoredJob>
  readonly subscriptions: Map<number, StoredSubscription>
  /** By id, the oldest first. */
  readonly authorities: Map<string, StoredAuthority>
  /** The certificates of each device that has some, the newest first. */
  readonly certificates: Map<DeviceId, ReadonlyArray<DeviceCertificate>>
  /** The device that has a certificate, by fingerprint. */
  readonly holders: Map<string, DeviceId>
  /** The devices that have a binding. */
  readonly bindings: Map<DeviceId, Binding>
  /** Why devices could not connect, the latest first. */
  readonly connectRefusals: Map<DeviceId, ReadonlyArray<ConnectRefusal>>
  /** What has gone wrong lately, by kind, project and subject. */
  readonly troubles: Map<string, Trouble>
  /** What is counted of each project, by minute and by hour. */
  readonly activity: Map<ProjectId, { readonly 1: Map<string, ActivitySum>; readonly 60: Map<string, ActivitySum> }>
  /** The devices that are or were traced lately. */
  readonly traces: Map<DeviceId, StoredTrace>
  /** Returns the next id of a product, device, batch, group, bulk command, network, job, subscription or entry of the audit log. */
  readonly nextId: () => number
}>()("@device-cloud/storage-memory/Tables") {
  static readonly layer: Layer.Layer<Tables> = Layer.effect(
    Tables,
    Effect.map(Clock.currentTimeMillis, (now) => {
      let lastId = 0
      return {
        projects: new Map(),
        accessKeys: new Map(),
        browserSessions: new Map(),
        audit: [],
        products: new Map(),
        quotas: new Map(),
        deviceCounts: new Map(),
        devices: new Map(),
        deviceNames: new Map(),
        shadows: new Map(),
        ledger: new CommandTable(),
        feed: new FeedLog(now),
        histories: new Map(),
        models: new Map(),
        codecs: new Map(),
        historyDays: new Map(),
        configurations: new Map(),
        configurationProgress: new Map(),
        moduleVersions: new Map(),
        requests: new Map(),
        connections: new ConnectionTable(),
        sightings: new Map(),
        ownerships: new Map(),
        heartbeats: new Map(),
        scenes: new Map(),
        timers: new Map(),
        executions: new Executions(),
        waiting: new Map(),
        webhookKeys: new Map(),
        batches: new Map(),
        bulkCommands: new Map(),
        deviceGroups: new Map(),
        groupDevices: new Map(),
        gateways: new GatewayTable(),
        topologyClaims: new Map(),
        addSessions: new Map(),
        onProductRemoved: [],
        meshNetworks: new Map(),
        jobs: new Map(),
        subscriptions: new Map(),
        authorities: new Map(),
        certificates: new Map(),
        holders: new Map(),
        bindings: new Map(),
        connectRefusals: new Map(),
        activity: new Map(),
        traces: new Map(),
        troubles: new Map(),
        nextId: () => ++lastId
      }
    })
  )
}

export const deviceDetail = (tables: Tables["Service"], device: Device): DeviceDetail => ({
  device,
  product: tables.products.get(device.productKey)!
})

/** Removes an access key and its sessions. */
export const removeAccessKey = ({ accessKeys, browserSessions }: Tables["Service"], id: string): void => {
  accessKeys.delete(id)
  for (const { accessKeyId, hash } of browserSessions.values()) if (accessKeyId === id) browserSessions.delete(hash)
}

/** The devices of a project that a filter selects, the oldest first. */
export const matchingDevices = (
  { devices, groupDevices, shadows }: Tables["Service"],
  projectId: ProjectId,
  { groupId, ...filter }: DeviceFilter
): ReadonlyArray<Device> => {
  const members = groupId === undefined ? undefined : groupDevices.get(groupId) ?? new Set()
  return [...devices.values()].filter((device) =>
    device.projectId === projectId && (members === undefined || members.has(device.deviceId)) &&
    matchesFilter(filter, device, shadows.get(device.deviceId)?.reported ?? {})
  )
}

/** The previous secret after a rotation of `secret`. */
export const previousAfter = ({ previousUntil }: Rotation, secret: string): PreviousSecret | null =>
  previousUntil === null ? null : { secret, until: previousUntil }

/** The page of `items`, newest first. `items` come oldest first. */
export const paginate = <A extends { readonly createdAt: number }>(
  items: ReadonlyArray<A>,
  page: PageRequest
): Page<A> =>
  // The sort is stable: of items of one instant, the one that was stored later comes first.
  pageOf(items.toReversed().sort((a, b) => b.createdAt - a.createdAt), page)

/** The page of `items` in their order. */
export const pageOf = <A>(items: ReadonlyArray<A>, { page, pageSize }: PageRequest): Page<A> => ({
  items: items.slice((page - 1) * pageSize, page * pageSize),
  total: items.length
})
