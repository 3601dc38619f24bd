/**
 * Remote configurations on PostgreSQL.
 */
import {
  type Configuration,
  type ConfigurationProgress,
  type ConfigurationScope,
  ConfigurationStore,
  type DeviceId,
  keptConfigurations,
  type NewConfiguration,
  type PageRequest,
  type ProductKey
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { type Clients, clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to products and devices in the same database. */
export const layer: Layer.Layer<ConfigurationStore, never, PgClient.PgClient> = Layer.effect(
  ConfigurationStore,
  Effect.map(clients, (both) => make(both))
)

interface Row {
  readonly configuration_id: string
  readonly version: bigint
  readonly format: Configuration["format"]
  readonly content: string
  readonly size: number
  readonly sha256: string
  readonly url: string
  readonly created_at: Date
}

const fromRow = (row: Row): Configuration => ({
  configurationId: row.configuration_id,
  version: Number(row.version),
  format: row.format,
  content: row.content,
  size: row.size,
  sha256: row.sha256,
  url: row.url,
  createdAt: row.created_at.getTime()
})

interface ProgressRow {
  readonly device_id: string
  readonly configuration_id: string
  readonly state: ConfigurationProgress["state"]
  readonly at: Date
}

const make = ({ reads, sql }: Clients) => {
  const owner = (scope: ConfigurationScope) =>
    "productKey" in scope
      ? sql`product_key = ${scope.productKey}`
      : sql`device_id = ${scope.deviceId}`

  const insert = Effect.fnUntraced(function*(scope: ConfigurationScope, draft: NewConfiguration) {
    const table = sql("productKey" in scope ? "product" : "device")
    // Versions of one owner are counted one after the other.
    const found = yield* sql`SELECT 1 FROM ${table} WHERE ${owner(scope)} FOR NO KEY UPDATE`
    if (found.length === 0) return Option.none()
    const { configurationId, content, createdAt, format, sha256, size, url } = draft
    const [stored] = yield* sql<Row>`
      INSERT INTO configuration (configuration_id, product_key, device_id, version, format, content, size, sha256, url,
        created_at)
      SELECT ${configurationId}, ${"productKey" in scope ? scope.productKey : null},
        ${"deviceId" in scope ? scope.deviceId : null},
        1 + coalesce((SELECT max(version) FROM configuration WHERE ${owner(scope)}), 0),
        ${format}, ${content}, ${size}, ${sha256}, ${url}, ${instant(createdAt)}
      RETURNING *`
    const dropped = yield* sql<Row>`
      DELETE FROM configuration WHERE ${owner(scope)} AND version <= ${Number(stored!.version) - keptConfigurations}
      RETURNING *`
    return Option.some({ stored: fromRow(stored!), dropped: dropped.map(fromRow) })
  }, sql.withTransaction)

  const progress = Effect.fnUntraced(function*(productKey: ProductKey, { page, pageSize }: PageRequest) {
    const [counted] = yield* reads<{ readonly count: bigint }>`SELECT count(*) AS count FROM configuration_progress
      JOIN device USING (device_id) WHERE product_key = ${productKey}`
    const rows = yield* reads<ProgressRow>`SELECT device_id, configuration_id, state, at FROM configuration_progress
      JOIN device USING (device_id) WHERE product_key = ${productKey}
      ORDER BY at DESC, device_id LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`
    return {
      items: rows.map((row): ConfigurationProgress => ({
        deviceId: row.device_id as DeviceId,
        configurationId: row.configuration_id,
        state: row.state,
        at: row.at.getTime()
      })),
      total: Number(counted!.count)
    }
  })

  return ConfigurationStore.of({
    insert: (scope, draft) => Effect.mapError(insert(scope, draft), storeError("ConfigurationStore.insert")),
    versions: (scope) =>
      reads<Row>`SELECT * FROM configuration WHERE ${owner(scope)} ORDER BY version DESC`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("ConfigurationStore.versions"))
      ),
    remove: (scope) =>
      sql<Row>`DELETE FROM configuration WHERE ${owner(scope)} RETURNING *`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("ConfigurationStore.remove"))
      ),
    current: ({ deviceId, productKey }) =>
      sql<Row>`SELECT * FROM configuration WHERE device_id = ${deviceId} OR product_key = ${productKey}
        ORDER BY device_id IS NULL, version DESC LIMIT 1`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("ConfigurationStore.current"))
      ),
    note: ({ at, configurationId, deviceId }) =>
      sql`INSERT INTO configuration_progress (device_id, configuration_id, state, at)
        SELECT device_id, ${configurationId}, 'offered', ${instant(at)}
        FROM device WHERE device_id = ${deviceId} FOR KEY SHARE
        ON CONFLICT (device_id) DO UPDATE
          SET configuration_id = excluded.configuration_id, state = excluded.state, at = excluded.at
          WHERE configuration_progress.configuration_id <> excluded.configuration_id
            OR configuration_progress.state = 'offered'`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("ConfigurationStore.note"))
      ),
    confirm: (deviceId, at) =>
      sql`UPDATE configuration_progress SET state = 'applied', at = ${instant(at)} WHERE device_id = ${deviceId}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("ConfigurationStore.confirm"))
      ),
    progress: (productKey, page) =>
      Effect.mapError(progress(productKey, page), storeError("ConfigurationStore.progress"))
  })
}
