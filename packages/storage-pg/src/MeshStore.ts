/**
 * Mesh networks on PostgreSQL.
 */
import {
  cursorOf,
  type DeviceId,
  type DeviceName,
  type KeyRing,
  type KeyRingError,
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
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { type DatabaseError, isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { networkRow, placeOf } from "./SecretColumns.ts"

/** Can be replaced alone. Its rows refer to projects and devices in the same database. */
export const layer: Layer.Layer<MeshStore, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer.effect(
  MeshStore,
  Effect.suspend(() => make)
).pipe(Layer.provide(SealedSecrets.layer))

interface NetworkRow {
  readonly network_id: bigint
  readonly project_id: string
  readonly network_key: string
  readonly app_key: string
  /** Null: the row is not sealed yet. */
  readonly fingerprint: string | null
  readonly sealed_with: number
  readonly unicast_cursor: number
  readonly provisioner_cursor: number
  readonly created_at: Date
  readonly updated_at: Date
}

const placeIn = (projectId: string, fingerprint: string, column: string) =>
  placeOf("mesh_network", networkRow(projectId, fingerprint), column)

const networkFromRow = ({ open }: SealedSecrets["Service"], row: NetworkRow): MeshNetwork => ({
  networkId: Number(row.network_id),
  projectId: row.project_id as ProjectId,
  networkKey: open(row.sealed_with, row.network_key, placeIn(row.project_id, row.fingerprint ?? "", "network_key")),
  appKey: open(row.sealed_with, row.app_key, placeIn(row.project_id, row.fingerprint ?? "", "app_key")),
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

const make = Effect.gen(function*() {
  const { reads, sql } = yield* clients
  const secrets = yield* SealedSecrets

  const fromRow = (row: NetworkRow) => networkFromRow(secrets, row)

  /** The condition that a row is the network with this key, sealed or not. */
  const isNetwork = (projectId: ProjectId, networkKey: string) =>
    sql`project_id = ${projectId} AND (fingerprint = ${secrets.fingerprint(networkKey)}
      OR sealed_with = 0 AND network_key = ${networkKey})`

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
        Number(network[cursor === "unicastCursor" ? "unicast_cursor" : "provisioner_cursor"]),
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
    insert: (network) => {
      const { key, number } = secrets.current()
      const { networkKey, projectId } = network
      const fingerprint = secrets.fingerprint(networkKey)
      const seal = (text: string, column: string) => key.seal(text, placeIn(projectId, fingerprint, column))
      return sql`
        INSERT INTO mesh_network (project_id, network_key, app_key, fingerprint, sealed_with, unicast_cursor,
          provisioner_cursor, created_at, updated_at)
        SELECT ${projectId}, ${seal(networkKey, "network_key")}, ${seal(network.appKey, "app_key")}, ${fingerprint},
          ${number}::int, ${network.unicastCursor}::int, ${network.provisionerCursor}::int,
          ${instant(network.createdAt)}::timestamptz, ${instant(network.updatedAt)}::timestamptz
        WHERE NOT EXISTS (SELECT FROM mesh_network WHERE ${isNetwork(projectId, networkKey)})
        ON CONFLICT DO NOTHING RETURNING network_id`.pipe(
        Effect.map((rows) => rows.length > 0 ? "inserted" : "taken"),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("MeshStore.insert"))
      )
    },
    get: (projectId, networkKey) =>
      sql<NetworkRow>`SELECT * FROM mesh_network WHERE ${isNetwork(projectId, networkKey)}`.pipe(
        Effect.flatMap(secrets.ready),
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("MeshStore.get"))
      ),
    list: (projectId, page) =>
      paginate<NetworkRow>(reads, {
        table: "mesh_network",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "network_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.flatMap(({ items, total }) =>
          Effect.map(secrets.ready(items), (rows) => ({ items: rows.map(fromRow), total }))
        ),
        Effect.mapError(storeError("MeshStore.list"))
      ),
    remove: (projectId, networkKey) =>
      sql`DELETE FROM mesh_network WHERE ${isNetwork(projectId, networkKey)} RETURNING network_id`.pipe(
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
      paginate<NodeRow>(reads, {
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
})
