import type { Json } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { pack } from "../src/HistoryEntries.ts"
import { decode, encode } from "../src/SegmentCodec.ts"

const Time = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_399_999 }))

/** Arrays would mostly be short. */
const Entries = Schema.Tuple(Array.from({ length: 12 }, () => Schema.Tuple([Time, Schema.Json])))

const json = (value: Json) => JSON.stringify(value)

it.effect.prop("entries come back as they were, by time", { drawn: Entries }, ({ drawn }) =>
  Effect.sync(() => {
    const entries = drawn as ReadonlyArray<readonly [number, Json]>
    const [packed, none] = pack(entries.map(([time]) => time), entries.map(([, value]) => json(value)))
    assert.isUndefined(none)
    const sorted = [...entries].sort(([a], [b]) => a - b)
    const { times, values } = decode(packed!.data)
    assert.deepStrictEqual(times, sorted.map(([time]) => time))
    assert.deepStrictEqual(values.map(json), sorted.map(([, value]) => json(value)))
    assert.deepInclude(packed!, { first: times[0]!, last: times.at(-1)!, count: entries.length })
  }))

it("the widest steps of time, and values of all kinds, alone and many times", () => {
  const values: ReadonlyArray<Json> = [null, true, 1e-300, -1.5, "NUL \0, half \ud800, é", [1, [{}]], { "": { a: [] } }]
  const day = [0, 86_399_999, 86_399_999]
  for (const count of [1, 500]) {
    const times = Array.from({ length: count }, () => day).flat().sort((a, b) => a - b)
    for (const value of values) {
      const found = decode(encode(times, times.map(() => json(value))))
      assert.deepStrictEqual(found, { times, values: times.map(() => value) })
    }
  }
})

it("reads the form that SQL writes", () => {
  const data = Buffer.from("\0[[5, 20.5], \n [5, \"\\u0000\"], [7, {\"a\": null}]]")
  assert.deepStrictEqual(decode(data), { times: [5, 5, 7], values: [20.5, "\0", { a: null }] })
})

it("a segment has at most 4096 entries, and fewer of large values", () => {
  const times = Array.from({ length: 5000 }, (_, i) => i)
  assert.deepStrictEqual(pack(times, times.map(String)).map(({ count }) => count), [4096, 904])
  const large = json("x".repeat(100_000))
  assert.deepStrictEqual(
    pack([3, 2, 1, 0, 4], Array.from({ length: 5 }, () => large)).map(({ first, last }) => [first, last]),
    [
      [0, 1],
      [2, 3],
      [4, 4]
    ]
  )
  const larger = json("x".repeat(300_000))
  assert.deepStrictEqual(pack([0, 1], [larger, larger]).map(({ count }) => count), [1, 1])
})

it("regular values take little room", () => {
  const times = Array.from({ length: 4096 }, (_, i) => i * 10_000)
  const bytes = encode(times, times.map((_, i) => json(20 + Math.round(30 * Math.sin(i / 300)) / 10))).length
  assert.isBelow(bytes / times.length, 1)
})
