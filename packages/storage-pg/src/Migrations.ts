/**
 * The database schema, one migration after the other. A released migration
 * never changes; a change of the schema is a new migration.
 */
import activity from "./migrations/0046_activity.ts"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { migrate } from "./Migrator.ts"
import type { DatabaseError } from "./PgErrors.ts"
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
import sceneBudgets from "./migrations/0011_scene_budgets.ts"
import sealedRequests from "./migrations/0012_sealed_requests.ts"
import audit from "./migrations/0013_audit.ts"
import quotas from "./migrations/0014_quotas.ts"
import codecs from "./migrations/0019_codecs.ts"
import configurations from "./migrations/0020_configurations.ts"
import freshProofs from "./migrations/0017_fresh_proofs.ts"
import edges from "./migrations/0022_edges.ts"
import appendOnlyAudit from "./migrations/0025_append_only_audit.ts"
import registrationsByProduct from "./migrations/0026_registrations_by_product.ts"
import certificates from "./migrations/0027_certificates.ts"
import jobs from "./migrations/0028_jobs.ts"
import groupsAndBulkCommands from "./migrations/0029_groups_and_bulk_commands.ts"
import lastingStatuses from "./migrations/0030_lasting_statuses.ts"
import otaStages from "./migrations/0031_ota_stages.ts"
import dynamicUpgrades from "./migrations/0033_dynamic_upgrades.ts"
import deviceCounts from "./migrations/0042_device_counts.ts"
import objects from "./migrations/0043_objects.ts"
import presenceHistory from "./migrations/0048_presence_history.ts"
import traces from "./migrations/0047_traces.ts"
import upgradeProgress from "./migrations/0049_upgrade_progress.ts"
import whatACommandWrites from "./migrations/0052_what_a_command_writes.ts"
import uplinkReceipts from "./migrations/0044_uplink_receipts.ts"
import recordsByEnd from "./migrations/0039_records_by_end.ts"
import feed from "./migrations/0035_feed.ts"
import history from "./migrations/0036_history.ts"
import feedReaders from "./migrations/0038_feed_readers.ts"
import subscriptions from "./migrations/0037_subscriptions.ts"
import signedFirmware from "./migrations/0034_signed_firmware.ts"
import presence from "./migrations/0040_presence.ts"
import browserSessions from "./migrations/0045_browser_sessions.ts"
import statusBlocks from "./migrations/0053_status_blocks.ts"
import oneOrderOfCounts from "./migrations/0054_one_order_of_counts.ts"
import nodeBackends from "./migrations/0055_node_backends.ts"
import replacedEpochs from "./migrations/0056_replaced_epochs.ts"
import feedCluster from "./migrations/0057_feed_cluster.ts"
import sealedSecrets from "./migrations/0015_sealed_secrets.ts"
import accessKeyRights from "./migrations/0016_access_key_rights.ts"
import commandDeliveries from "./migrations/0018_command_deliveries.ts"

/**
 * Brings the database up to date when it is built, also while other processes
 * do the same. It creates the tables of all stores, whichever of them you use.
 * Fails if a newer version has changed the database so that this one cannot use it.
 */
export const layer: Layer.Layer<never, DatabaseError, SqlClient.SqlClient> = Layer.effectDiscard(
  Effect.suspend(() =>
    Effect.flatMap(MigrationClient, (client) => {
      const run = migrate(migrations, contracting)
      return client === undefined ? run : Effect.provideService(run, SqlClient.SqlClient, client)
    })
  )
)

/** The client of the migrations, which may take hours. Default: that of all other statements. */
export const MigrationClient = Context.Reference<SqlClient.SqlClient | undefined>(
  "@device-cloud/storage-pg/MigrationClient",
  { defaultValue: () => undefined }
)

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
  "0010_requests_apart": requestsApart,
  "0011_scene_budgets": sceneBudgets,
  "0012_sealed_requests": sealedRequests,
  "0013_audit": audit,
  "0014_quotas": quotas,
  "0015_sealed_secrets": sealedSecrets,
  "0016_access_key_rights": accessKeyRights,
  "0017_fresh_proofs": freshProofs,
  "0018_command_deliveries": commandDeliveries,
  "0019_codecs": codecs,
  "0020_configurations": configurations,
  "0022_edges": edges,
  "0025_append_only_audit": appendOnlyAudit,
  "0026_registrations_by_product": registrationsByProduct,
  "0027_certificates": certificates,
  "0028_jobs": jobs,
  "0029_groups_and_bulk_commands": groupsAndBulkCommands,
  "0030_lasting_statuses": lastingStatuses,
  "0031_ota_stages": otaStages,
  "0033_dynamic_upgrades": dynamicUpgrades,
  "0034_signed_firmware": signedFirmware,
  "0035_feed": feed,
  "0036_history": history,
  "0037_subscriptions": subscriptions,
  "0038_feed_readers": feedReaders,
  "0039_records_by_end": recordsByEnd,
  "0040_presence": presence,
  "0042_device_counts": deviceCounts,
  "0043_objects": objects,
  "0044_uplink_receipts": uplinkReceipts,
  "0045_browser_sessions": browserSessions,
  "0046_activity": activity,
  "0047_traces": traces,
  "0048_presence_history": presenceHistory,
  "0049_upgrade_progress": upgradeProgress,
  "0052_what_a_command_writes": whatACommandWrites,
  "0053_status_blocks": statusBlocks,
  "0054_one_order_of_counts": oneOrderOfCounts,
  "0055_node_backends": nodeBackends,
  "0056_replaced_epochs": replacedEpochs,
  "0057_feed_cluster": feedCluster
}

/**
 * Migrations after which a version that does not know them cannot use the database.
 * All others leave it as such a version needs it, so that both run beside each other.
 */
export const contracting: ReadonlyArray<keyof typeof migrations> = ["0036_history", "0040_presence"]
