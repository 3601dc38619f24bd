/**
 * Mesh networks on SQLite.
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
import { Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { type Place, Secrets } from "./Secrets.ts"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to projects and devices in the same database. */
export const layer: Layer.Layer<MeshStore, never, Sqlite | Secrets> = Layer.effect(
  MeshStore,
  Effect.map(Effect.all([Sqlite, Secrets]), ([sql, secrets]) => make(sql, secrets))
)

interface NetworkRow {
  readonly network_id: number
  readonly project_id: string
  readonly fingerprint: string
  readonly network_key: string
  readonly app_key: string
  readonly unicast_cursor: number
  readonly provisioner_cursor: number
  readonly created_at: number
  readonly updated_at: number
}

const placeOf = (
  { fingerprint, project_id }: Pick<NetworkRow, "fingerprint" | "project_id">,
  column: "network_key" | "app_key"
): Place => ["mesh_network", `${project_id} ${fingerprint}`, column]

const networkFromRow = ({ open }: Secrets["Service"], row: NetworkRow): MeshNetwork => ({
  networkId: row.network_id,
  projectId: row.project_id as ProjectId,
  networkKey: open(row.network_key, placeOf(row, "network_key")),
  appKey: open(row.app_key, placeOf(row, "app_key")),
  unicastCursor: row.unicast_cursor,
  provisionerCursor: row.provisioner_cursor,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

interface NodeRow {
  readonly device_id: string
  readonly product_key: string
  readonly device_name: string
  readonly mesh_addr: number
  readonly node_type: number
  readonly created_at: number
}

const nodeFromRow = (row: NodeRow): MeshNode => ({
  deviceId: row.device_id as DeviceId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  meshAddr: row.mesh_addr,
  nodeType: row.node_type as MeshNodeType,
  createdAt: row.created_at
})

const cursorColumns = { unicastCursor: "unicast_cursor", provisionerCursor: "provisioner_cursor" } as const

const nodeColumns = "mesh_node.*, device.product_key, device.device_name"

const make = (sql: Sqlite["Service"], secrets: Secrets["Service"]) => {
  const fromRow = (row: NetworkRow) => networkFromRow(secrets, row)

  const networkWhere = (where: string, ...parameters: ReadonlyArray<string | number>) =>
    Option.map(
      Option.fromUndefinedOr(sql.get<NetworkRow>(`SELECT * FROM mesh_network WHERE ${where}`, parameters)),
      fromRow
    )

  const findNode = (networkId: number, deviceId: DeviceId): MeshNode | undefined => {
    const row = sql.get<NodeRow>(
      `SELECT ${nodeColumns} FROM mesh_node JOIN device USING (device_id) WHERE network_id = ? AND device_id = ?`,
      [networkId, deviceId]
    )
    return row === undefined ? undefined : nodeFromRow(row)
  }

  const usedAddresses = (networkId: number): ReadonlySet<number> =>
    new Set(
      sql.all<{ readonly mesh_addr: number }>("SELECT mesh_addr FROM mesh_node WHERE network_id = ?", [networkId])
        .map(({ mesh_addr }) => mesh_addr)
    )

  const addNode = (networkId: number, { at, deviceId, meshAddr, nodeType }: NewMeshNode): NodeAdded => {
    const network = Option.getOrUndefined(networkWhere("network_id = ?", networkId))
    if (network === undefined) return { _tag: "NoNetwork" }
    const known = findNode(networkId, deviceId)
    if (known !== undefined) return { _tag: "Exists", node: known }
    if (sql.get("SELECT 1 FROM device WHERE device_id = ?", [deviceId]) === undefined) return { _tag: "NoDevice" }
    const cursor = cursorOf(nodeType)
    const placed = place(nodeType, network[cursor], usedAddresses(networkId), meshAddr)
    if (placed === "taken") return { _tag: "Taken" }
    if (placed === "full") return { _tag: "Full" }
    sql.run("INSERT INTO mesh_node (network_id, device_id, mesh_addr, node_type, created_at) VALUES (?, ?, ?, ?, ?)", [
      networkId,
      deviceId,
      placed.meshAddr,
      nodeType,
      at
    ])
    sql.run(`UPDATE mesh_network SET ${cursorColumns[cursor]} = ?, updated_at = ? WHERE network_id = ?`, [
      placed.cursor,
      at,
      networkId
    ])
    return { _tag: "Added", node: findNode(networkId, deviceId)! }
  }

  return MeshStore.of({
    insert: (network) =>
      sql.write("MeshStore.insert", () => {
        if (sql.get("SELECT 1 FROM project WHERE id = ?", [network.projectId]) === undefined) return "no-project"
        const row = { project_id: network.projectId, fingerprint: secrets.fingerprint(network.networkKey) }
        const inserted = sql.run(
          `INSERT INTO mesh_network (project_id, fingerprint, network_key, app_key, unicast_cursor,
              provisioner_cursor, created_at, updated_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
          [
            row.project_id,
            row.fingerprint,
            secrets.seal(network.networkKey, placeOf(row, "network_key")),
            secrets.seal(network.appKey, placeOf(row, "app_key")),
            network.unicastCursor,
            network.provisionerCursor,
            network.createdAt,
            network.updatedAt
          ]
        )
        return inserted > 0 ? "inserted" : "taken"
      }),
    get: (projectId, networkKey) =>
      sql.read(
        "MeshStore.get",
        () => networkWhere("project_id = ? AND fingerprint = ?", projectId, secrets.fingerprint(networkKey))
      ),
    list: (projectId, page) =>
      sql.read("MeshStore.list", () => {
        const { items, total } = pageOf<NetworkRow>(sql, {
          table: "mesh_network",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, network_id DESC",
          page
        })
        return { items: items.map(fromRow), total }
      }),
    remove: (projectId, networkKey) =>
      sql.write(
        "MeshStore.remove",
        () =>
          sql.run("DELETE FROM mesh_network WHERE project_id = ? AND fingerprint = ?", [
            projectId,
            secrets.fingerprint(networkKey)
          ]) > 0
      ),
    addNode: (networkId, node) => sql.write("MeshStore.addNode", () => addNode(networkId, node)),
    removeNode: (networkId, deviceId) =>
      sql.write(
        "MeshStore.removeNode",
        () => sql.run("DELETE FROM mesh_node WHERE network_id = ? AND device_id = ?", [networkId, deviceId]) > 0
      ),
    nodes: (networkId, page) =>
      sql.read("MeshStore.nodes", () => {
        const { items, total } = pageOf<NodeRow>(sql, {
          table: "mesh_node JOIN device USING (device_id)",
          columns: nodeColumns,
          where: "network_id = ?",
          values: [networkId],
          order: "mesh_node.created_at DESC, node_id DESC",
          page
        })
        return { items: items.map(nodeFromRow), total }
      }),
    gateways: (networkId) =>
      sql.read(
        "MeshStore.gateways",
        () =>
          sql.all<{ readonly device_id: string }>(
            "SELECT device_id FROM mesh_node WHERE network_id = ? AND node_type = 2",
            [networkId]
          ).map(({ device_id }) => device_id as DeviceId)
      )
  })
}
