/**
 * The database schema, one migration after the other. A released migration
 * never changes; a change of the schema is a new migration.
 */
import { Effect, Layer } from "effect"
import { Migrator, type SqlClient } from "effect/sql"
import { type DatabaseError, databaseError } from "./PgErrors.ts"
import initial from "./migrations/0001_initial.ts"
import modelsCommandsHistory from "./migrations/0002_models_commands_history.ts"
import deviceAccess from "./migrations/0003_device_access.ts"
import batches from "./migrations/0004_batches.ts"
import ota from "./migrations/0005_ota.ts"
import topology from "./migrations/0006_topology.ts"
import scenes from "./migrations/0007_scenes.ts"
import mesh from "./migrations/0008_mesh.ts"
import otaPlaces from "./migrations/0009_ota_places.ts"
import requestsApart from "./migrations/0010_requests_apart.ts"

/**
 * Brings the database up to date when it is built, also while other processes
 * do the same. It creates the tables of all stores, whichever of them you use.
 */
export const layer: Layer.Layer<never, DatabaseError, SqlClient.SqlClient> = Layer.effectDiscard(
  Effect.suspend(() => Effect.mapError(migrate(migrations), databaseError))
)

/** Runs those of the migrations that are newer than the newest one of the database. */
export const migrate = (migrations: Parameters<typeof Migrator.fromRecord>[0]) =>
  Migrator.make({})({ loader: Migrator.fromRecord(migrations), table: "device_cloud_migration" })

/** By number and name. */
export const migrations = {
  "0001_initial": initial,
  "0002_models_commands_history": modelsCommandsHistory,
  "0003_device_access": deviceAccess,
  "0004_batches": batches,
  "0005_ota": ota,
  "0006_topology": topology,
  "0007_scenes": scenes,
  "0008_mesh": mesh,
  "0009_ota_places": otaPlaces,
  "0010_requests_apart": requestsApart
}
