import {
  applyReports,
  DeviceId,
  emptyShadow,
  maxAttributes,
  type PropertyReport,
  type Shadow,
  type ShadowEntry
} from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const empty = emptyShadow(DeviceId.make("device"))

const report = (properties: Record<string, ShadowEntry>, receivedAt = 1000): PropertyReport => ({
  properties,
  receivedAt
})

const entry = (value: Schema.Json, time = 1000): ShadowEntry => ({ value, time })

describe("a shadow", () => {
  it("takes reports in their order and counts a version for each", () => {
    const [dropped, shadow] = applyReports(empty, [
      report({ a: entry(1), b: entry("x") }, 1000),
      report({ a: entry(2, 2000) }, 2000)
    ])
    assert.deepStrictEqual(dropped, [{}, {}])
    assert.deepStrictEqual(shadow, {
      ...empty,
      version: 2,
      reported: { a: entry(2, 2000), b: entry("x") },
      updatedAt: 2000
    })
  })

  it("never replaces a newer value by an older one, and replaces one of the same time", () => {
    const [, first] = applyReports(empty, [report({ a: entry("new", 500), b: entry("old", 500) })])
    const [dropped, shadow] = applyReports(first, [report({ a: entry("older", 499), b: entry("same time", 500) })])
    assert.deepStrictEqual(dropped, [{}])
    assert.deepStrictEqual(shadow.reported, { a: entry("new", 500), b: entry("same time", 500) })
  })

  it("does not change the shadow that it was given", () => {
    const [, before] = applyReports(empty, [report({ a: entry(1) })])
    const copy = structuredClone(before)
    applyReports(before, [report({ a: entry(2, 9999), b: entry(3) })])
    assert.deepStrictEqual(before, copy)
  })

  it("drops attributes beyond the limit with their reason and keeps updating known ones", () => {
    const full = Object.fromEntries(Array.from({ length: maxAttributes }, (_, i) => [`p${i}`, entry(i)]))
    const [, before] = applyReports(empty, [report(full)])
    const [[dropped], shadow] = applyReports(before, [report({ p0: entry("updated", 2000), extra: entry(1) })])
    assert.deepStrictEqual(dropped, { extra: "more than 128 attributes" })
    assert.strictEqual(Object.keys(shadow.reported).length, maxAttributes)
    assert.strictEqual(shadow.reported["p0"]?.value, "updated")
  })

  it("drops what would make a side longer than 16 KB, and what is nested deeper than 8", () => {
    const deep = (levels: number): Schema.Json => levels === 0 ? 1 : [deep(levels - 1)]
    const [[dropped], shadow] = applyReports(empty, [
      report({
        long: entry("x".repeat(17_000)),
        deep: entry(deep(9)),
        fits: entry(deep(8)),
        half: entry("y".repeat(9000))
      })
    ])
    assert.deepStrictEqual(Object.keys(dropped!), ["long", "deep"])
    assert.deepStrictEqual(Object.keys(shadow.reported), ["fits", "half"])
    const [[grown], same] = applyReports(shadow, [
      report({ other: entry("z".repeat(9000)), half: entry("z".repeat(16_400)) })
    ])
    assert.deepStrictEqual(Object.keys(grown!), ["other", "half"])
    assert.deepStrictEqual(same.reported, shadow.reported)
  })

  it("takes names that mean something to JavaScript for what they are", () => {
    const [dropped, shadow] = applyReports(empty, [
      report({ constructor: entry(1), toString: entry(2), hasOwnProperty: entry(3) })
    ])
    assert.deepStrictEqual(dropped, [{}])
    assert.deepStrictEqual(Object.keys(shadow.reported), ["constructor", "toString", "hasOwnProperty"])
  })

  const Reports = Schema.Array(Schema.Array(Schema.Tuple([
    Schema.Literals(["a", "b", "c"]),
    Schema.Struct({ value: Schema.Int, time: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })) })
  ])))

  it.prop("ends with the latest value of each property, however the reports were divided", [Reports], ([reports]) => {
    const messages = reports.map((pairs) => report(Object.fromEntries(pairs)))
    const [, together] = applyReports(empty, messages)
    const apart = messages.reduce<Shadow>((shadow, message) => applyReports(shadow, [message])[1], empty)
    assert.deepStrictEqual(together, apart)
    for (const [id, stored] of Object.entries(together.reported)) {
      const values = messages.flatMap(({ properties }) => properties[id] ?? [])
      const latest = Math.max(...values.map(({ time }) => time))
      assert.deepStrictEqual(stored, values.findLast(({ time }) => time === latest))
    }
  })
})
