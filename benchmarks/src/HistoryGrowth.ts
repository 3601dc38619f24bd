/**
 * `history-growth`: `mqtt-ingest-durable` beside 100,000,000 stored values, also while
 * old ones go, and how long a server takes to start there.
 */
import { HistoryStore } from "@device-cloud/core"
import { Clock, Effect } from "effect"
import { setTimeout } from "node:timers/promises"
import type { CloudPlan, Said } from "./Cloud.ts"
import { compare, type Measure, type Part, type Row, within } from "./Comparison.ts"
import { withDatabase } from "./Database.ts"
import { load, withServer } from "./Processes.ts"
import { fill, layer, millisOfDay } from "./StoredHistory.ts"

const maxStartMillis = 5000
/** Days of a part. */
const partDays = 5

/** Forgets what is too old after some more days. */
const forgetAfter = (url: string, days: number): Promise<void> =>
  HistoryStore.use((store) => store.prune({ keepDays: 60 })).pipe(
    Effect.updateService(Clock.Clock, (clock) => {
      const then = () => Date.now() + days * millisOfDay
      return Object.assign(Object.create(clock), {
        currentTimeMillisUnsafe: then,
        currentTimeMillis: Effect.sync(then)
      })
    }),
    Effect.provide(layer(url)),
    Effect.runPromise
  )

const besideValues: Part = () =>
  withDatabase((empty) =>
    withDatabase(async (grown) => {
      await Effect.runPromise(Effect.provide(fill, layer(grown)))
      const from = performance.now()
      const started = await withServer(
        "./Cloud",
        [JSON.stringify({ devices: 1, databaseUrl: grown })],
        () => Promise.resolve(performance.now() - from)
      )
      const results: Array<Row> = [within({
        benchmark: "history-growth",
        scenario: "start beside 100 M values, ms",
        unit: "ms",
        limit: maxStartMillis,
        values: [started]
      })]
      let forgotten = 0
      for (const connections of [200, 2000]) {
        const plan = (databaseUrl: string): CloudPlan => ({ devices: connections, databaseUrl })
        await withServer("./Cloud", [JSON.stringify(plan(grown))], (beside: Said) =>
          withServer("./Cloud", [JSON.stringify(plan(empty))], async (alone: Said) => {
            const measure = ({ devices, port }: Said): Measure => (times) =>
              load({ port, devices, job: { kind: "ingest", qos: 1, window: 8, subscribe: false, ...times } })
            const references = { "an empty database": { bar: 0.9, measure: measure(alone) } }
            const common = { benchmark: "history-growth", references }
            results.push(
              ...await compare({
                ...common,
                scenario: `${connections} connections, 100 M values`,
                ours: measure(beside)
              })
            )
            const whileForgetting: Measure = async (times) => {
              const measuring = measure(beside)({ ...times, untilSteady: false, measureMillis: 3000 })
              await setTimeout(times.warmupMillis + 500)
              // The server itself does it once in ten minutes.
              await forgetAfter(grown, ++forgotten * partDays)
              return measuring
            }
            results.push(
              ...await compare({
                ...common,
                scenario: `${connections} connections, while 9 M values go`,
                ours: whileForgetting
              })
            )
          }))
      }
      return results
    })
  )

export const historyGrowth: ReadonlyArray<Part> = [besideValues]
