/**
 * Firmware and upgrade tasks on PostgreSQL.
 */
import { OtaStore } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import * as OtaFirmware from "./OtaFirmware.ts"
import * as OtaProgress from "./OtaProgress.ts"
import * as OtaRecords from "./OtaRecords.ts"
import * as OtaStages from "./OtaStages.ts"
import * as OtaTasks from "./OtaTasks.ts"

export const layer: Layer.Layer<OtaStore, never, PgClient.PgClient> = Layer.effect(
  OtaStore,
  Effect.map(
    Effect.all([OtaFirmware.make, OtaTasks.make, OtaStages.make, OtaRecords.make, OtaProgress.make]),
    ([firmware, tasks, stages, records, progress]) =>
      OtaStore.of({ ...firmware, ...tasks, ...stages, ...records, ...progress })
  )
)
