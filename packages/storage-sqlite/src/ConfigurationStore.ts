/**
 * Remote configurations on SQLite.
 */
import {
  type Configuration,
  type ConfigurationProgress,
  type ConfigurationScope,
  ConfigurationStore,
  type DeviceId,
  keptConfigurations
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to products and devices in the same database. */
export const layer: Layer.Layer<ConfigurationStore, never, Sqlite> = Layer.effect(
  ConfigurationStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly configuration_id: string
  readonly version: number
  readonly format: Configuration["format"]
  readonly content: string
  readonly size: number
  readonly sha256: string
  readonly url: string
  readonly created_at: number
}

const fromRow = (row: Row): Configuration => ({
  configurationId: row.configuration_id,
  version: row.version,
  format: row.format,
  content: row.content,
  size: row.size,
  sha256: row.sha256,
  url: row.url,
  createdAt: row.created_at
})

interface ProgressRow {
  readonly device_id: string
  readonly configuration_id: string
  readonly state: ConfigurationProgress["state"]
  readonly at: number
}

const progressFromRow = (row: ProgressRow): ConfigurationProgress => ({
  deviceId: row.device_id as DeviceId,
  configurationId: row.configuration_id,
  state: row.state,
  at: row.at
})

/** The table of the owner, the column that names it, and its name. */
const ownerOf = (scope: ConfigurationScope) =>
  "productKey" in scope
    ? { table: "product", column: "product_key", key: scope.productKey }
    : { table: "device", column: "device_id", key: scope.deviceId }

const make = (sql: Sqlite["Service"]) => {
  const versions = (scope: ConfigurationScope, limit: number): ReadonlyArray<Configuration> => {
    const { column, key } = ownerOf(scope)
    return sql.all<Row>(`SELECT * FROM configuration WHERE ${column} = ? ORDER BY version DESC LIMIT ?`, [key, limit])
      .map(fromRow)
  }

  const removeUpTo = (scope: ConfigurationScope, version: number): ReadonlyArray<Configuration> => {
    const { column, key } = ownerOf(scope)
    return sql.all<Row>(`DELETE FROM configuration WHERE ${column} = ? AND version <= ? RETURNING *`, [key, version])
      .map(fromRow)
  }

  return ConfigurationStore.of({
    insert: (scope, draft) =>
      sql.write("ConfigurationStore.insert", () => {
        const { column, key, table } = ownerOf(scope)
        if (sql.get(`SELECT 1 FROM ${table} WHERE ${column} = ?`, [key]) === undefined) return Option.none()
        const stored: Configuration = { ...draft, version: 1 + (versions(scope, 1)[0]?.version ?? 0) }
        sql.run(
          `INSERT INTO configuration (configuration_id, ${column}, version, format, content, size, sha256, url, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          [
            stored.configurationId,
            key,
            stored.version,
            stored.format,
            stored.content,
            stored.size,
            stored.sha256,
            stored.url,
            stored.createdAt
          ]
        )
        return Option.some({ stored, dropped: removeUpTo(scope, stored.version - keptConfigurations) })
      }),
    versions: (scope) => sql.read("ConfigurationStore.versions", () => versions(scope, keptConfigurations)),
    remove: (scope) => sql.write("ConfigurationStore.remove", () => removeUpTo(scope, Number.MAX_SAFE_INTEGER)),
    current: ({ deviceId, productKey }) =>
      sql.read(
        "ConfigurationStore.current",
        () => Option.fromUndefinedOr(versions({ deviceId }, 1)[0] ?? versions({ productKey }, 1)[0])
      ),
    note: ({ at, configurationId, deviceId }) =>
      sql.write("ConfigurationStore.note", () => {
        sql.run(
          `INSERT INTO configuration_progress AS known (device_id, configuration_id, state, at)
            SELECT device_id, ?, 'offered', ? FROM device WHERE device_id = ?
            ON CONFLICT (device_id) DO UPDATE
              SET configuration_id = excluded.configuration_id, state = excluded.state, at = excluded.at
              WHERE known.configuration_id <> excluded.configuration_id OR known.state = 'offered'`,
          [configurationId, at, deviceId]
        )
      }),
    confirm: (deviceId, at) =>
      sql.write("ConfigurationStore.confirm", () => {
        sql.run("UPDATE configuration_progress SET state = 'applied', at = ? WHERE device_id = ?", [at, deviceId])
      }),
    progress: (productKey, { page, pageSize }) =>
      sql.read("ConfigurationStore.progress", () => {
        const ofProduct = "configuration_progress JOIN device USING (device_id) WHERE product_key = ?"
        return {
          items: sql.all<ProgressRow>(
            `SELECT device_id, configuration_id, state, at FROM ${ofProduct}
              ORDER BY at DESC, device_id LIMIT ? OFFSET ?`,
            [productKey, pageSize, (page - 1) * pageSize]
          ).map(progressFromRow),
          total: sql.get<{ readonly count: number }>(`SELECT count(*) AS count FROM ${ofProduct}`, [productKey])!.count
        }
      })
  })
}
