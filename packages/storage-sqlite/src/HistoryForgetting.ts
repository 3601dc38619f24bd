/**
 * Removes history in slices: no transaction takes long.
 */
import type { StoreError } from "@device-cloud/core"
import { Effect } from "effect"
import type { Sqlite } from "./Sqlite.ts"

/** Entries that one transaction removes: some milliseconds. */
const sliceSize = 1000

/** Devices that are looked at together. */
const deviceSlice = 100

/** Later than all entries, Unix milliseconds. */
const never = Number.MAX_SAFE_INTEGER

const millisOfDay = 86_400_000

/** Removes a slice of what a device has from before `before`, Unix milliseconds. Returns how many entries. */
const removeSlice = (sql: Sqlite["Service"], device: number, before: number): number => {
  let removed = 0
  for (
    const { number } of sql.all<{ number: number }>("SELECT number FROM history_property WHERE device = ?", [device])
  ) {
    removed += sql.run(
      `DELETE FROM history_sample WHERE property = ?1 AND (time, place) IN (
        SELECT time, place FROM history_sample WHERE property = ?1 AND time < ?2 ORDER BY time, place LIMIT ?3
      )`,
      [number, before, sliceSize - removed]
    )
    if (removed === sliceSize) return removed
  }
  return removed + sql.run(
    `DELETE FROM history_event WHERE number IN (
      SELECT number FROM history_event WHERE device = ? AND time < ? ORDER BY time LIMIT ?
    )`,
    [device, before, sliceSize - removed]
  )
}

const removeBefore = (
  sql: Sqlite["Service"],
  operation: string,
  device: number,
  before: number
): Effect.Effect<void, StoreError> =>
  Effect.gen(function*() {
    while ((yield* sql.write(operation, () => removeSlice(sql, device, before))) === sliceSize) yield* Effect.yieldNow
  })

/** Removes what is older than the days of its product, or else `keepDays`, at `now`, Unix milliseconds. */
export const forgetOld = (
  sql: Sqlite["Service"],
  operation: string,
  keepDays: number,
  now: number
): Effect.Effect<void, StoreError> =>
  Effect.gen(function*() {
    for (let after = 0; after >= 0;) {
      const devices = yield* sql.read(operation, () =>
        sql.all<{ readonly number: number; readonly days: number | null }>(
          `SELECT history_device.number, history_retention.days FROM history_device
            LEFT JOIN device USING (device_id)
            LEFT JOIN history_retention ON history_retention.product_key = device.product_key
            WHERE history_device.number > ? ORDER BY history_device.number LIMIT ?`,
          [after, deviceSlice]
        ))
      for (const { days, number } of devices) {
        const kept = days ?? keepDays
        if (kept > 0) yield* removeBefore(sql, operation, number, now - kept * millisOfDay)
      }
      after = devices.at(-1)?.number ?? -1
      yield* Effect.yieldNow
    }
  })

/** Removes what is left of removed devices. */
export const forgetRemoved = (sql: Sqlite["Service"], operation: string): Effect.Effect<void, StoreError> =>
  Effect.gen(function*() {
    const removed = yield* sql.read(
      operation,
      () => sql.all<{ readonly number: number }>("SELECT number FROM history_device WHERE device_id IS NULL")
    )
    for (const { number } of removed) {
      yield* removeBefore(sql, operation, number, never)
      yield* sql.write(operation, () => sql.run("DELETE FROM history_device WHERE number = ?", [number]))
      yield* Effect.yieldNow
    }
  })
