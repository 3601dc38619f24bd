/**
 * Every Device Cloud store on PostgreSQL 14 or newer.
 */
import { type DeviceCloud, StoreHealth } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, Schema } from "effect"
import type { Migrator, SqlClient, SqlError } from "effect/sql"
import * as AccessKeyStore from "./AccessKeyStore.ts"
import * as BindingStore from "./BindingStore.ts"
import * as CommandStore from "./CommandStore.ts"
import * as DeviceStore from "./DeviceStore.ts"
import * as IdempotencyStore from "./IdempotencyStore.ts"
import * as MeshStore from "./MeshStore.ts"
import { migrate } from "./Migrations.ts"
import * as NodeBus from "./NodeBus.ts"
import * as OtaStore from "./OtaStore.ts"
import * as PresenceStore from "./PresenceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import * as SceneStore from "./SceneStore.ts"
import * as ShadowStore from "./ShadowStore.ts"
import * as HistoryStore from "./HistoryStore.ts"
import * as ThingModelStore from "./ThingModelStore.ts"
import * as TopologyStore from "./TopologyStore.ts"
import * as UplinkStore from "./UplinkStore.ts"
import { storeError } from "./PgErrors.ts"

const health = Effect.map(PgClient.PgClient, (sql) => ({
  check: Effect.asVoid(Effect.mapError(sql`SELECT 1`, storeError("StoreHealth.check")))
}))

/** The database cannot be reached or brought up to date. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>()("DatabaseError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const databaseError = (cause: Migrator.MigrationError | SqlError.SqlError): DatabaseError => {
  const { message } = cause._tag === "SqlError" && cause.reason.cause instanceof Error ? cause.reason.cause : cause
  return new DatabaseError({ message: `The database cannot be used: ${message}`, cause })
}

/** The stores on a client of your own. Brings the database up to date first. */
export const layerClient: Layer.Layer<
  DeviceCloud.Stores | StoreHealth,
  DatabaseError,
  PgClient.PgClient | SqlClient.SqlClient
> = Layer.mergeAll(
  AccessKeyStore.layer,
  BindingStore.layer,
  CommandStore.layer.pipe(Layer.provideMerge(ShadowStore.layer)),
  DeviceStore.layer,
  IdempotencyStore.layer,
  MeshStore.layer,
  Layer.orDie(NodeBus.layer),
  OtaStore.layer,
  PresenceStore.layer,
  ProductStore.layer,
  ProjectStore.layer,
  SceneStore.layer,
  HistoryStore.layer,
  ThingModelStore.layer,
  TopologyStore.layer,
  UplinkStore.layer,
  Layer.effect(StoreHealth, health)
).pipe(Layer.provideMerge(Layer.effectDiscard(Effect.mapError(migrate, databaseError))))

/** Short statements of many fibers share connections. */
const client = (url: Redacted.Redacted) =>
  Layer.effectContext(
    Effect.mapError(
      Layer.build(PgClient.layer({ url, multiplex: true, applicationName: "device-cloud" })),
      databaseError
    )
  )

/** The stores on the database at `url`, for example `postgres://user:password@host:5432/database`. */
export const layer = (options: {
  readonly url: Redacted.Redacted
}): Layer.Layer<DeviceCloud.Stores | StoreHealth, DatabaseError> => layerClient.pipe(Layer.provide(client(options.url)))
