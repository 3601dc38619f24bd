/**
 * Firmware and upgrade tasks on SQLite.
 */
import { OtaStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import * as OtaFirmware from "./OtaFirmware.ts"
import * as OtaRecords from "./OtaRecords.ts"
import * as OtaStages from "./OtaStages.ts"
import * as OtaTasks from "./OtaTasks.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: it finds devices and sets their versions. */
export const layer: Layer.Layer<OtaStore, never, Sqlite> = Layer.effect(
  OtaStore,
  Effect.map(Sqlite, (sql) =>
    OtaStore.of({
      ...OtaFirmware.make(sql),
      ...OtaTasks.make(sql),
      ...OtaStages.make(sql),
      ...OtaRecords.make(sql)
    }))
)
