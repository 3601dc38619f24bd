/**
 * A query: properties of several devices, each of which is read in the same way.
 */
import { Effect, type Result } from "effect"
import type { Device, DeviceNotFound, DeviceReference } from "../device/Device.ts"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import type { PropertySample } from "./HistoryEntry.ts"
import type { HistoryPoint } from "./HistoryPoint.ts"
import { type HistoryRead, pointCount } from "./HistoryRead.ts"

export interface HistoryQuery {
  readonly devices: ReadonlyArray<DeviceReference>
  readonly propertyIds: ReadonlyArray<string>
  readonly read: HistoryRead
  /** Devices of other products count as unknown. Default: of all products. */
  readonly productKeys?: ReadonlyArray<string> | undefined
}

/** Values or points, as the read asks for. */
export type HistoryEntries = ReadonlyArray<PropertySample> | ReadonlyArray<HistoryPoint>

/** One property of one device of a query. */
export interface HistorySeries {
  readonly reference: DeviceReference
  readonly propertyId: string
  readonly result: Result.Result<
    { readonly device: Device; readonly entries: HistoryEntries },
    DeviceNotFound
  >
}

/** Series of one query, at most. */
export const maxSeries = 200

/** Values or points of one query, at most: so many if each series has all that it may have. */
export const maxQueried = 50_000

/** Fails if the query asks for more than `maxSeries` or `maxQueried`. */
export const checkSize = ({ devices, propertyIds, read }: HistoryQuery): Effect.Effect<void, InvalidInput> => {
  const series = devices.length * propertyIds.length
  if (series > maxSeries) {
    return Effect.fail(InvalidInput.of("properties", `Expected at most ${maxSeries} series; there are ${series}`))
  }
  const each = read._tag === "Values" ? read.range.limit : pointCount(read.plot)
  return series * each > maxQueried
    ? Effect.fail(InvalidInput.of(
      read._tag === "Values" ? "limit" : "interval",
      `Expected at most ${maxQueried} entries in all; ${series} series have up to ${each} each`
    ))
    : Effect.void
}
