import { Aggregate } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

it("takes samples in any order, and what is no number is left out", () => {
  const aggregate = new Aggregate({ start: 5, end: 24, interval: 10 })
  for (const [time, value] of [[24, 1], [5, 2], [14, 8], [15, true], [25, 9], [4, 9], [20, "7"]] as const) {
    aggregate.add(time, value)
  }
  assert.deepStrictEqual(aggregate.buckets(), [
    { time: 5, count: 2, min: 2, max: 8, sum: 10, first: 2, last: 8 },
    { time: 15, count: 1, min: 1, max: 1, sum: 1, first: 1, last: 1 }
  ])
})

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Times and values; an array would mostly be short. */
const Entries = Schema.Tuple(Array.from({ length: 20 }, () => Schema.Tuple([between(0, 99), between(-9, 9)])))

it.effect.prop(
  "buckets sum up what a filter selects",
  { entries: Entries, start: between(0, 50), interval: between(1, 60) },
  ({ entries: drawn, interval, start }) =>
    Effect.sync(() => {
      const entries = drawn as ReadonlyArray<readonly [time: number, value: number]>
      const end = 80
      const aggregate = new Aggregate({ start, end, interval })
      for (const [time, value] of entries) aggregate.add(time, value)
      const sorted = entries.filter(([time]) => time >= start && time <= end).sort(([a], [b]) => a - b)
      const expected = new Map<number, Array<number>>()
      for (const [time, value] of sorted) {
        const at = start + Math.floor((time - start) / interval) * interval
        expected.set(at, [...expected.get(at) ?? [], value])
      }
      assert.deepStrictEqual(
        aggregate.buckets(),
        [...expected].map(([time, values]) => ({
          time,
          count: values.length,
          min: Math.min(...values),
          max: Math.max(...values),
          sum: values.reduce((sum, value) => sum + value, 0),
          first: values[0]!,
          last: values.at(-1)!
        }))
      )
    })
)
