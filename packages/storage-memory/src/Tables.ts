/**
 * What the stores share: one object is the whole database.
 */
import type {
  AccessKey,
  AddSession,
  Batch,
  Binding,
  Device,
  DeviceDetail,
  DeviceId,
  EventRecord,
  Json,
  MeshNetwork,
  MeshNode,
  ModelVersion,
  Page,
  PageRequest,
  Product,
  ProductKey,
  Project,
  ProjectId,
  Scene,
  SceneId,
  SceneTimer,
  Shadow,
  StoredAnswer,
  WebhookKeys
} from "@device-cloud/core"
import { Context, Layer } from "effect"
import { Executions } from "./Executions.ts"
import { CommandTable } from "./CommandTable.ts"
import type { RingBuffer } from "./RingBuffer.ts"

export interface DeviceHistory {
  readonly samples: Map<string, RingBuffer<Json>>
  readonly events: RingBuffer<EventRecord>
}

export interface StoredRequest {
  readonly fingerprint: string
  /** Unix milliseconds. */
  readonly claimedAt: number
  /** Undefined: it is being answered. */
  readonly answer: StoredAnswer | undefined
}

export interface StoredAddSession {
  readonly session: AddSession
  /** Unix milliseconds; null: it is open. */
  readonly endedAt: number | null
  readonly members: Set<DeviceId>
}

export interface StoredNetwork {
  network: MeshNetwork
  /** In the order in which they were added. */
  readonly nodes: Map<DeviceId, MeshNode>
}

export class Tables extends Context.Service<Tables, {
  readonly projects: Map<ProjectId, Project>
  readonly accessKeys: Map<string, AccessKey>
  readonly products: Map<ProductKey, Product>
  readonly devices: Map<DeviceId, Device>
  /** `product key/device name` to device id. */
  readonly deviceNames: Map<string, DeviceId>
  readonly shadows: Map<DeviceId, Shadow>
  readonly ledger: CommandTable
  readonly histories: Map<DeviceId, DeviceHistory>
  /** The versions of each product's model, newest first. */
  readonly models: Map<ProductKey, ReadonlyArray<ModelVersion>>
  /** `project/key` to the request of that name, the oldest claim first. */
  readonly requests: Map<string, StoredRequest>
  /** The connection that counts, of devices that are online. */
  readonly connections: Map<DeviceId, { readonly connectionId: string; readonly nodeId: string }>
  /** Until when devices count as online that hold no connection, Unix milliseconds. */
  readonly sightings: Map<DeviceId, number>
  /** Node to its latest heartbeat, Unix milliseconds. */
  readonly nodes: Map<string, number>
  readonly scenes: Map<SceneId, Scene>
  /** By cron id. */
  readonly timers: Map<string, SceneTimer>
  readonly executions: Executions
  readonly webhookKeys: Map<ProjectId, WebhookKeys>
  readonly batches: Map<number, { readonly batch: Batch; readonly projectId: ProjectId }>
  /** Sub-device to its gateway; the latest at the end. */
  readonly gatewayOf: Map<DeviceId, DeviceId>
  readonly addSessions: Map<string, StoredAddSession>
  /** What other stores do when a product is removed. */
  readonly onProductRemoved: Array<(productKey: ProductKey) => void>
  readonly meshNetworks: Map<number, StoredNetwork>
  /** Of devices that have one. */
  readonly bindings: Map<DeviceId, Binding>
  /** The next product, device, batch or network id. */
  readonly nextId: () => number
}>()("@device-cloud/storage-memory/Tables") {
  static readonly layer: Layer.Layer<Tables> = Layer.sync(Tables, () => {
    let lastId = 0
    return {
      projects: new Map(),
      accessKeys: new Map(),
      products: new Map(),
      devices: new Map(),
      deviceNames: new Map(),
      shadows: new Map(),
      ledger: new CommandTable(),
      histories: new Map(),
      models: new Map(),
      requests: new Map(),
      connections: new Map(),
      sightings: new Map(),
      nodes: new Map(),
      scenes: new Map(),
      timers: new Map(),
      executions: new Executions(),
      webhookKeys: new Map(),
      batches: new Map(),
      gatewayOf: new Map(),
      addSessions: new Map(),
      onProductRemoved: [],
      meshNetworks: new Map(),
      bindings: new Map(),
      nextId: () => ++lastId
    }
  })
}

export const deviceDetail = (tables: Tables["Service"], device: Device): DeviceDetail => ({
  device,
  product: tables.products.get(device.productKey)!
})

/** The page of `items`, which come oldest first, in the order newest first. */
export const paginate = <A extends { readonly createdAt: number }>(
  items: ReadonlyArray<A>,
  { page, pageSize }: PageRequest
): Page<A> => ({
  // The sort is stable: what was stored later comes first among the same instant.
  items: items.toReversed().sort((a, b) => b.createdAt - a.createdAt).slice((page - 1) * pageSize, page * pageSize),
  total: items.length
})
