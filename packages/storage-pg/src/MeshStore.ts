/**
 * Mesh networks on PostgreSQL.
 */
import {
  cursorOf,
  type DeviceId,
  type DeviceName,
  type MeshNetwork,
  type MeshNode,
  type MeshNodeType,
  MeshStore,
  type NewMeshNode,
  type NodeAdded,
  place,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to projects and devices in the same database. */
export const layer: Layer.Layer<MeshStore, never, PgClient.PgClient> = Layer.effect(
  MeshStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface NetworkRow {
  readonly network_id: bigint
  readonly project_id: string
  readonly network_key: string
  readonly app_key: string
  readonly unicast_cursor: number
  readonly provisioner_cursor: number
  readonly created_at: Date
  readonly updated_at: Date
}

const networkFromRow = (row: NetworkRow): MeshNetwork => ({
  networkId: Number(row.network_id),
  projectId: row.project_id as ProjectId,
  networkKey: row.network_key,
  appKey: row.app_key,
  unicastCursor: row.unicast_cursor,
  provisionerCursor: row.provisioner_cursor,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

interface NodeRow {
  readonly device_id: string
  readonly product_key: string
  readonly device_name: string
  readonly mesh_addr: number
  readonly node_type: number
  readonly created_at: Date
}

const nodeFromRow = (row: NodeRow): MeshNode => ({
  deviceId: row.device_id as DeviceId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  meshAddr: row.mesh_addr,
  nodeType: row.node_type as MeshNodeType,
  createdAt: row.created_at.getTime()
})

const make = (sql: PgClient.PgClient) => {
  const addNode = Effect.fnUntraced(
    function*(networkId: number, { at, deviceId, meshAddr, nodeType }: NewMeshNode) {
      // Nodes of one network are added one after the other.
      const [network] = yield* sql<NetworkRow>`SELECT * FROM mesh_network WHERE network_id = ${networkId} FOR UPDATE`
      if (network === undefined) return { _tag: "NoNetwork" } satisfies NodeAdded
      const [known] = yield* sql<NodeRow>`SELECT mesh_node.*, device.product_key, device.device_name
        FROM mesh_node JOIN device USING (device_id) WHERE network_id = ${networkId} AND device_id = ${deviceId}`
      if (known !== undefined) return { _tag: "Exists", node: nodeFromRow(known) } satisfies NodeAdded
      const used = yield* sql<{ readonly mesh_addr: number }>`SELECT mesh_addr FROM mesh_node
        WHERE network_id = ${networkId} AND node_type = ${nodeType}::smallint`
      const cursor = cursorOf(nodeType)
      const placed = place(
        nodeType,
        networkFromRow(network)[cursor],
        new Set(used.map(({ mesh_addr }) => mesh_addr)),
        meshAddr
      )
      if (placed === "taken") return { _tag: "Taken" } satisfies NodeAdded
      if (placed === "full") return { _tag: "Full" } satisfies NodeAdded
      const [added] = yield* sql<NodeRow>`
        WITH added AS (
          INSERT INTO mesh_node (network_id, device_id, mesh_addr, node_type, created_at)
          VALUES (${networkId}, ${deviceId}, ${placed.meshAddr}, ${nodeType}::smallint, ${instant(at)})
          RETURNING *
        )
        SELECT added.*, device.product_key, device.device_name FROM added JOIN device USING (device_id)`
      const column = sql(cursor === "unicastCursor" ? "unicast_cursor" : "provisioner_cursor")
      yield* sql`UPDATE mesh_network SET ${column} = ${placed.cursor}, updated_at = ${instant(at)}
        WHERE network_id = ${networkId}`
      return { _tag: "Added", node: nodeFromRow(added!) } satisfies NodeAdded
    },
    sql.withTransaction,
    // The network is locked and exists, so the device does not.
    Effect.catchIf(isForeignKeyViolation, () => Effect.succeed({ _tag: "NoDevice" } satisfies NodeAdded))
  )

  return MeshStore.of({
    insert: (network) =>
      sql`INSERT INTO mesh_network (project_id, network_key, app_key, unicast_cursor, provisioner_cursor, created_at,
          updated_at)
        VALUES (${network.projectId}, ${network.networkKey}, ${network.appKey}, ${network.unicastCursor},
          ${network.provisionerCursor}, ${instant(network.createdAt)}, ${instant(network.updatedAt)})
        ON CONFLICT DO NOTHING RETURNING network_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("MeshStore.insert"))
      ),
    get: (projectId, networkKey) =>
      sql<NetworkRow>`SELECT * FROM mesh_network WHERE project_id = ${projectId} AND network_key = ${networkKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), networkFromRow)),
        Effect.mapError(storeError("MeshStore.get"))
      ),
    list: (projectId, page) =>
      paginate<NetworkRow>(sql, {
        table: "mesh_network",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "network_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(networkFromRow), total })),
        Effect.mapError(storeError("MeshStore.list"))
      ),
    remove: (projectId, networkKey) =>
      sql`DELETE FROM mesh_network WHERE project_id = ${projectId} AND network_key = ${networkKey}
        RETURNING network_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("MeshStore.remove"))
      ),
    addNode: (networkId, node) => Effect.mapError(addNode(networkId, node), storeError("MeshStore.addNode")),
    removeNode: (networkId, deviceId) =>
      sql`DELETE FROM mesh_node WHERE network_id = ${networkId} AND device_id = ${deviceId} RETURNING node_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("MeshStore.removeNode"))
      ),
    nodes: (networkId, page) =>
      paginate<NodeRow>(sql, {
        table: "mesh_node",
        where: sql`network_id = ${networkId}`,
        tieBreaker: "node_id",
        select: sql`SELECT page.*, device.product_key, device.device_name FROM page JOIN device USING (device_id)`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(nodeFromRow), total })),
        Effect.mapError(storeError("MeshStore.nodes"))
      ),
    gateways: (networkId) =>
      sql<{ readonly device_id: string }>`SELECT device_id FROM mesh_node
        WHERE network_id = ${networkId} AND node_type = 2`.pipe(
        Effect.map((rows) => rows.map(({ device_id }) => device_id as DeviceId)),
        Effect.mapError(storeError("MeshStore.gateways"))
      )
  })
}
