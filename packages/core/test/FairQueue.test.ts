import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Entry, FairQueue } from "../src/kernel/FairQueue.ts"

class Named extends Entry {
  readonly name: string

  constructor(name: string, weight = 1) {
    super(weight)
    this.name = name
  }
}

const unbounded = { capacity: Number.POSITIVE_INFINITY, maxWeight: Number.POSITIVE_INFINITY, turnWeight: 1 }

/** Adds entries named `{key}{number}`, in the order of the keys; the first letter of a key is its group. */
const fill = (queue: FairQueue<Named>, keys: ReadonlyArray<string>, weight = 1) => {
  const counts = new Map<string, number>()
  return keys.map((key) => {
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    return queue.push(new Named(`${key}${count}`, weight), key, key[0]!)
  })
}

const names = (entries: ReadonlyArray<Named>) => entries.map(({ name }) => name)

const all = (queue: FairQueue<Named>) => names(queue.take(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY))

const times = (count: number, key: string) => Array.from({ length: count }, () => key)

describe("a fair queue", () => {
  it("hands out one entry of each key in turn", () => {
    const queue = new FairQueue<Named>(unbounded)
    fill(queue, [...times(4, "ax"), "ay", "az", "ay"])
    assert.deepStrictEqual(all(queue), ["ax0", "ay0", "az0", "ax1", "ay1", "ax2", "ax3"])
    assert.deepStrictEqual(all(queue), [])
  })

  it("a turn is several light entries, or one that is heavy", () => {
    const queue = new FairQueue<Named>({ ...unbounded, turnWeight: 4 })
    fill(queue, times(5, "ax"), 2)
    fill(queue, ["ay", "ay"], 9)
    fill(queue, ["az"])
    assert.deepStrictEqual(all(queue), ["ax0", "ax1", "ay0", "az0", "ax2", "ax3", "ay1", "ax4"])
    fill(queue, times(4, "ax"))
    fill(queue, ["ay"])
    // The end of a batch ends the turn, by number as by weight.
    assert.deepStrictEqual([names(queue.take(2, 100)), names(queue.take(2, 100))], [["ax0", "ax1"], ["ay0", "ax2"]])
    all(queue)
    fill(queue, ["ax", "ax", "ay"], 2)
    assert.deepStrictEqual([names(queue.take(9, 3)), names(queue.take(9, 3))], [["ax0"], ["ay0"]])
  })

  it("lets groups take turns before keys", () => {
    const queue = new FairQueue<Named>(unbounded)
    fill(queue, ["a1", "a2", "a3", "a4", "b1", "b1", "b1"].map((key) => `${key}-`))
    assert.deepStrictEqual(all(queue), ["a1-0", "b1-0", "a2-0", "b1-1", "a3-0", "b1-2", "a4-0"])
  })

  it("lets what comes later wait for one entry of each other key, however many there are", () => {
    const queue = new FairQueue<Named>(unbounded)
    fill(queue, times(5000, "ax"))
    assert.deepStrictEqual(names(queue.take(3, 100)), ["ax0", "ax1", "ax2"])
    fill(queue, ["ay"])
    assert.include(names(queue.take(2, 100)), "ay0")
  })

  it("hands out no more than the wanted weight, and one entry at least", () => {
    const queue = new FairQueue<Named>(unbounded)
    fill(queue, ["ax", "ay"], 7)
    fill(queue, ["az", "az"], 2)
    assert.deepStrictEqual(names(queue.take(10, 3)), ["ax0"])
    assert.deepStrictEqual(names(queue.take(10, 9)), ["ay0", "az0"])
    assert.deepStrictEqual(names(queue.take(10, 9)), ["az1"])
    assert.strictEqual(queue.size, 0)
  })

  it("is full only for keys with more than their share", () => {
    const queue = new FairQueue<Named>({ capacity: 8, maxWeight: 800, turnWeight: 1 })
    assert.deepStrictEqual(fill(queue, times(9, "ax")), [...times(8, "").map(() => true), false])
    // Another project has a half, and each of its devices a part of that.
    assert.deepStrictEqual(fill(queue, ["bx", "by", "bz", "bx"]), [true, true, true, false])
    assert.deepStrictEqual(fill(queue, ["ax"]), [false])
    queue.take(14, 800)
    assert.deepStrictEqual(fill(queue, ["ax"]), [true])
  })

  it("counts weight towards the share as well", () => {
    const queue = new FairQueue<Named>({ capacity: 1000, maxWeight: 100, turnWeight: 1 })
    assert.deepStrictEqual(fill(queue, ["ax", "ax", "ax"], 40), [true, true, false])
    assert.deepStrictEqual(fill(queue, ["bx"], 1), [true])
  })

  it("is shared until thousands of entries in a row come of one group", () => {
    const queue = new FairQueue<Named>(unbounded)
    fill(queue, ["ax", "bx", ...times(20_000, "ax")])
    assert.isTrue(queue.isShared)
    // Nobody's entries say nothing.
    queue.push(new Named("step"), "", "")
    fill(queue, ["ay"])
    assert.isFalse(queue.isShared)
    fill(queue, ["bx"])
    assert.isTrue(queue.isShared)
  })

  const Step = Schema.Union([
    Schema.Struct({ take: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })) }),
    Schema.Struct({ key: Schema.Literals(["ax", "ay", "bx"]), weight: Schema.Literals([1, 2, 3]) })
  ])

  it.prop("keeps the order of each key, loses nothing and hands out nothing twice", [Schema.Array(Step)], ([steps]) => {
    const queue = new FairQueue<Named>({ capacity: 4, maxWeight: 6, turnWeight: 2 })
    const pushed: Array<string> = []
    const taken: Array<string> = []
    steps.forEach((step, i) => {
      if ("take" in step) {
        const entries = queue.take(step.take, 4)
        assert.isAtMost(entries.length === 1 ? 0 : entries.reduce((sum, { weight }) => sum + weight, 0), 4)
        taken.push(...names(entries))
      } else {
        pushed.push(`${step.key} ${i}`)
        queue.push(new Named(`${step.key} ${i}`, step.weight), step.key, step.key[0]!)
      }
      assert.strictEqual(queue.size, pushed.length - taken.length)
    })
    taken.push(...all(queue))
    for (const key of ["ax", "ay", "bx"]) {
      const ofKey = (name: string) => name.startsWith(key)
      assert.deepStrictEqual(taken.filter(ofKey), pushed.filter(ofKey))
    }
  })
})
