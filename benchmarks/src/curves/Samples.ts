/**
 * `samples`: what stored history costs a report, and a day of one property.
 */
import { HistoryStore } from "@device-cloud/core"
import { Effect, Layer, ManagedRuntime } from "effect"
import { costOfRequests } from "./Cost.ts"
import type { Curve } from "./Curve.ts"
import { reporters, reporting } from "./Reporting.ts"
import { fillDays, type Filled, layer, millisOfDay, samplesOfDay } from "../StoredHistory.ts"

const readMillis = 1000
/** By the database that they are in. */
const filled = new Map<string, Filled>()

export const samples: Curve = {
  name: "samples",
  title: "Stored values",
  text: "200 devices report beside the history of 20 others. A day of one property is 8,640 values, read as they are " +
    "by a program with the stores of a server. PostgreSQL.",
  axis: "values",
  points: [samplesOfDay, 10 * samplesOfDay, 58 * samplesOfDay],
  panels: [
    { figure: "server", title: "Server, µs for a report" },
    { figure: "database", title: "PostgreSQL, µs for a report" },
    { figure: "day", title: "Both, µs for a day of values" }
  ],
  cloud: reporting({
    cloud: (point) => ({
      plan: { devices: reporters },
      isDurable: true,
      fill: async (url) => {
        filled.set(url, await Effect.runPromise(Effect.provide(fillDays(point / samplesOfDay), layer(url))))
      }
    }),
    prepare: async ({ durable }) => {
      const { pid, url } = durable!
      const { devices, lastDay } = filled.get(url)!
      const start = lastDay * millisOfDay
      let turn = 0
      return async () => {
        const runtime = ManagedRuntime.make(Layer.orDie(layer(url)))
        const read = async () => {
          await runtime.runPromise(
            HistoryStore.use((store) =>
              store.samples(devices[turn++ % devices.length]!, "temperature", {
                start,
                end: start + millisOfDay - 1,
                limit: 10_000,
                order: "asc"
              })
            )
          )
        }
        try {
          await read()
          return { day: await costOfRequests({ server: process.pid, database: pid }, readMillis, read) }
        } finally {
          await runtime.dispose()
        }
      }
    }
  })
}
