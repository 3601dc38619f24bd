/**
 * The reference for durable ingest: four fibers write the rows of reports through
 * the same driver, and do nothing else.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Console, Effect, Redacted } from "effect"
import { makeReportRows, type Report } from "./ReportRows.ts"

export interface RawUpsertPlan {
  readonly databaseUrl: string
  readonly devices: number
  /** Rows in one statement. */
  readonly batch: number
  readonly warmupMillis: number
  readonly measureMillis: number
}

const plan = JSON.parse(process.argv[2]!) as RawUpsertPlan
const fibers = 4

const program = Effect.gen(function*() {
  const write = yield* makeReportRows
  const reports = Array.from({ length: plan.devices }, (_, i): Report => ({
    deviceId: `loada1b2c3d4e5f${i}`,
    reported: JSON.stringify({
      temperature: { value: 21.5, time: 1795231554300 },
      humidity: { value: 48, time: 1795231554300 },
      mode: { value: "eco", time: 1795231554300 }
    }),
    properties: ["temperature", "humidity", "mode"],
    values: ["21.5", "48", `"eco"`]
  }))

  const from = yield* Clock.currentTimeMillis
  const measureFrom = from + plan.warmupMillis
  const until = measureFrom + plan.measureMillis
  let count = 0
  // Each fiber has its own devices, so fibers never wait for each other's rows.
  const share = Math.floor(reports.length / fibers)
  yield* Effect.forEach(
    Array.from({ length: fibers }, (_, fiber) => reports.slice(fiber * share, (fiber + 1) * share)),
    (own) =>
      Effect.gen(function*() {
        const batch = Math.min(plan.batch, own.length)
        for (let at = 0;; at = (at + batch) % own.length) {
          const now = yield* Clock.currentTimeMillis
          if (now >= until) return
          const rows = own.slice(at, at + batch)
          yield* write(rows, now)
          if (now >= measureFrom) count += rows.length
        }
      }),
    { concurrency: "unbounded", discard: true }
  )
  yield* Console.log(JSON.stringify({ count, seconds: plan.measureMillis / 1000 }))
})

await Effect.runPromise(
  program.pipe(Effect.provide(PgClient.layer({ url: Redacted.make(plan.databaseUrl), multiplex: true })))
)
process.exit(0)
