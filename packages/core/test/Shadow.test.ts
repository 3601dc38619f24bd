import {
  delta,
  DeviceId,
  emptyShadow,
  maxAttributes,
  type Shadow,
  ShadowDraft,
  type ShadowEntry,
  type ShadowSide
} from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const empty = emptyShadow(DeviceId.make("device"))

interface Report {
  readonly properties: ShadowSide
  readonly receivedAt: number
}

const report = (properties: ShadowSide, receivedAt = 1000): Report => ({ properties, receivedAt })

/** Takes reports one after the other; answers what each of them lost, with the reasons. */
const applyReports = (
  shadow: Shadow,
  reports: ReadonlyArray<Report>
): readonly [dropped: ReadonlyArray<Readonly<Record<string, string>>>, shadow: Shadow] => {
  const draft = new ShadowDraft(shadow)
  const dropped = reports.map(({ properties, receivedAt }) => {
    const reasons = Object.entries(properties).flatMap(([id, entry]) => {
      const reason = draft.set("reported", id, entry)
      return reason === undefined ? [] : [[id, reason] as const]
    })
    draft.accept(receivedAt)
    return Object.fromEntries(reasons)
  })
  return [dropped, draft.finish()]
}

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
    assert.deepStrictEqual(dropped, { extra: "more than 128 attributes that the thing model does not have" })
    assert.strictEqual(Object.keys(shadow.reported).length, maxAttributes)
    assert.strictEqual(shadow.reported["p0"]?.value, "updated")
  })

  it("drops what would make the shadow longer than 256 KB, and what is nested deeper than 8", () => {
    const deep = (levels: number): Schema.Json => levels === 0 ? 1 : [deep(levels - 1)]
    const [[dropped], shadow] = applyReports(empty, [
      report({
        long: entry("x".repeat(263_000)),
        deep: entry(deep(9)),
        fits: entry(deep(8)),
        half: entry("y".repeat(140_000))
      })
    ])
    assert.deepStrictEqual(Object.keys(dropped!), ["long", "deep"])
    assert.deepStrictEqual(Object.keys(shadow.reported), ["fits", "half"])
    const [[grown], same] = applyReports(shadow, [
      report({ other: entry("z".repeat(140_000)), half: entry("z".repeat(262_144)) })
    ])
    assert.deepStrictEqual(Object.keys(grown!), ["other", "half"])
    assert.deepStrictEqual(same.reported, shadow.reported)
  })

  it("has up to 262,144 characters of JSON on both sides together", () => {
    const sides = (reported: Record<string, string>, desired: Record<string, string>) =>
      JSON.stringify(reported).length + JSON.stringify(desired).length
    for (const desired of [{}, { d: "x" }, { d: "x", e: "é" }]) {
      const left = 262_144 - sides({ a: "😀", b: "" }, desired)
      for (const [length, fits] of [[left, true], [left + 1, false]] as const) {
        const draft = new ShadowDraft(empty)
        for (const [id, value] of Object.entries(desired)) draft.desire(id, value, 1000)
        draft.set("reported", "a", entry("😀"))
        assert.strictEqual(draft.set("reported", "b", entry("y".repeat(length))) === undefined, fits)
      }
    }
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

  it("takes the next value after one whose time was far ahead, and every value from now", () => {
    const now = 10_000_000
    const ahead = { ...empty, reported: { a: entry("frozen", 2 * now), b: entry("frozen", 2 * now) } }
    const draft = new ShadowDraft(ahead)
    draft.set("reported", "a", entry("earlier", now - 1), now)
    assert.strictEqual(draft.reported["a"]?.value, "frozen")
    draft.set("reported", "a", entry("now", now), now)
    draft.set("reported", "a", entry("earlier", now - 1), now)
    assert.deepStrictEqual(draft.reported["a"], entry("now", now))
    draft.set("reported", "b", entry("cloud", now - 60_000), now - 60_000)
    assert.deepStrictEqual(draft.reported["b"], entry("cloud", now - 60_000))
  })

  it("is the one that it was made of when nothing was accepted", () => {
    const draft = new ShadowDraft(empty)
    draft.set("reported", "a", entry(1))
    assert.strictEqual(draft.finish(), empty)
  })

  it("has changed also if its version and its time come again", () => {
    const before: Shadow = { ...empty, version: 100, updatedAt: 1, reported: { a: entry(1) } }
    const draft = new ShadowDraft(before)
    draft.clear("reported")
    draft.accept(1, 0)
    const cleared = draft.mark()
    draft.set("reported", "b", entry(2))
    draft.accept(1, 100)
    assert.deepStrictEqual(draft.finish(), { ...before, reported: { b: entry(2) } })
    draft.rollBack(cleared)
    assert.deepStrictEqual(draft.finish(), { ...before, version: 0, reported: {} })
  })

  it("counts the versions of each desired value, and measures again what was removed", () => {
    const draft = new ShadowDraft(empty)
    const long = "x".repeat(140_000)
    assert.isUndefined(draft.desire("a", long, 1))
    assert.isString(draft.desire("b", long, 1))
    draft.remove("desired", "a")
    assert.isUndefined(draft.desire("b", long, 1))
    assert.isUndefined(draft.desire("b", 2, 2))
    assert.deepStrictEqual(draft.desired, { b: { value: 2, time: 2, version: 2 } })
    draft.clear("desired")
    assert.deepStrictEqual(draft.desired, {})
  })

  it("lacks what is desired, not yet reported, and not reported differently since", () => {
    const reported = {
      same: entry({ x: 1, y: [2] }, 5),
      later: entry("device", 20),
      earlier: entry("device", 5)
    }
    const desired = {
      same: entry({ y: [2], x: 1 }, 10),
      later: entry("app", 10),
      earlier: entry("app", 10),
      unknown: entry("app", 10)
    }
    assert.deepStrictEqual(Object.keys(delta({ desired, reported })), ["earlier", "unknown"])
  })
})
