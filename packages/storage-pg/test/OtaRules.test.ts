import {
  type FirmwareStatus,
  isOngoing,
  isUpgradeFinal,
  type RecordStatus,
  rolloutDelay,
  type UpgradeTaskStatus,
  type VerificationStatus
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"
import { recordNumber, taskNumber, upgradeTaskNumber, verificationNumber } from "../src/OtaRow.ts"
import * as OtaRules from "../src/OtaRules.ts"
import { wholeNumbers } from "../src/PgParameters.ts"

const database = Layer.unwrap(
  Effect.map(
    newDatabase,
    (url) => PgClient.layer({ url })
  )
)

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

layer(database)("the rules of the core in SQL", (it) => {
  it.effect.prop(
    "a statement schedules the devices of a roll-out as the core does",
    {
      taskId: between(1, Number.MAX_SAFE_INTEGER),
      maximumPerMinute: between(1, 1_000_000),
      first: between(0, 2_000_000)
    },
    ({ first, maximumPerMinute, taskId }) =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const rows = yield* sql<{ readonly place: bigint; readonly delay: number }>`
          SELECT place, ${OtaRules.rolloutDelay(sql, { maximumPerMinute, taskId }, "place")} AS delay
          FROM generate_series(${first}::bigint, ${first}::bigint + 199) AS place`
        assert.strictEqual(rows.length, 200)
        for (const { delay, place } of rows) {
          assert.strictEqual(delay, Math.floor(rolloutDelay(taskId, Number(place), maximumPerMinute)))
        }
      }),
    { arbitrary: { runs: 200 } }
  )

  /** The names whose numbers satisfy the condition. */
  const holding = (numbers: Readonly<Record<string, number>>, condition: string) =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const entries = Object.entries(numbers)
      const values = wholeNumbers(entries.map(([, number]) => number))
      const rows = yield* sql<{ readonly status: number }>`SELECT status
        FROM unnest(${values}::smallint[]) AS status WHERE ${sql.literal(condition)}`
      const found = new Set(rows.map(({ status }) => status))
      return new Set(entries.flatMap(([name, number]) => found.has(number) ? [name] : []))
    })

  it.effect("a statement finds the tasks that have not ended", () =>
    Effect.gen(function*() {
      const upgrades = yield* holding(upgradeTaskNumber, OtaRules.isOngoing)
      for (const status of Object.keys(upgradeTaskNumber) as Array<UpgradeTaskStatus>) {
        assert.strictEqual(upgrades.has(status), isOngoing({ status }), status)
        assert.strictEqual(taskNumber({ kind: "upgrade", status }), upgradeTaskNumber[status])
      }
      const { unverified: _, ...ofTasks } = verificationNumber
      const verifications = yield* holding(ofTasks, OtaRules.isOngoing)
      for (const status of Object.keys(ofTasks) as Array<VerificationStatus & FirmwareStatus>) {
        assert.strictEqual(verifications.has(status), isOngoing({ status }), status)
      }
    }))

  it.effect("a statement finds the records that have not ended", () =>
    Effect.gen(function*() {
      const unfinished = yield* holding(recordNumber, OtaRules.isUnfinished)
      for (const status of Object.keys(recordNumber) as Array<RecordStatus>) {
        assert.strictEqual(unfinished.has(status), !isUpgradeFinal(status), status)
      }
    }))
})
