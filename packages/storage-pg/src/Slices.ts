/**
 * Work on many rows that holds up nobody else of the process for long.
 */
import { Effect } from "effect"

/** Rows between two turns of others: sealing them takes one to two milliseconds. */
const sliceSize = 100

/** Maps the items; others have their turn after each slice. */
export const mapInSlices: <A, B>(items: ReadonlyArray<A>, map: (item: A) => B) => Effect.Effect<ReadonlyArray<B>> =
  Effect.fnUntraced(function*<A, B>(items: ReadonlyArray<A>, map: (item: A) => B) {
    if (items.length <= sliceSize) return items.map(map)
    const mapped: Array<B> = []
    for (const [i, item] of items.entries()) {
      mapped.push(map(item))
      if (i % sliceSize === sliceSize - 1) yield* Effect.yieldNow
    }
    return mapped
  })
