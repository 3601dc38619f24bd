/**
 * The health of the file: it can be read and written.
 */
import { StoreHealth } from "@device-cloud/core"
import { Clock, Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Each check reads; one in two seconds writes. */
export const layer: Layer.Layer<StoreHealth, never, Sqlite> = Layer.effect(
  StoreHealth,
  Effect.map(Sqlite, (sql) => make(sql))
)

/** How long a file counts as one that can be written, milliseconds. */
const writableMillis = 2000

const make = (sql: Sqlite["Service"]) => {
  let writableUntil = 0

  return StoreHealth.of({
    migration: sql.read("StoreHealth.migration", () => {
      const { name, number } = sql.get<{ readonly number: number; readonly name: string }>(
        "SELECT number, name FROM migration ORDER BY number DESC LIMIT 1"
      )!
      return `${String(number).padStart(4, "0")}_${name}`
    }),
    check: Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now < writableUntil
        ? Effect.asVoid(sql.read("StoreHealth.check", () => sql.get("SELECT written_at FROM health")))
        : sql.write("StoreHealth.check", () => {
          sql.run("INSERT OR REPLACE INTO health (number, written_at) VALUES (1, ?)", [now])
          writableUntil = now + writableMillis
        }))
  })
}
