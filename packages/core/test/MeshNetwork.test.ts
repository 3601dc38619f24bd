import { place } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const ranges = { 1: [0x0100, 0x7fff], 2: [0x0001, 0x00ff] } as const

describe("the address of a node of a mesh network", () => {
  it("is the first free one from the cursor on, and the cursor goes on to the next free one", () => {
    assert.deepStrictEqual(place(1, 0x0100, new Set()), { meshAddr: 0x0100, cursor: 0x0101 })
    assert.deepStrictEqual(place(2, 1, new Set([1, 2, 4])), { meshAddr: 3, cursor: 5 })
  })

  it("begins again after the last of its range", () => {
    assert.deepStrictEqual(place(1, 0x7fff, new Set()), { meshAddr: 0x7fff, cursor: 0x0100 })
    assert.deepStrictEqual(place(2, 0xff, new Set([0xff])), { meshAddr: 1, cursor: 2 })
  })

  it("is the one that is asked for, and moves the cursor", () => {
    assert.deepStrictEqual(place(1, 0x0100, new Set(), 0x0200), { meshAddr: 0x0200, cursor: 0x0201 })
    assert.deepStrictEqual(place(1, 0x0300, new Set(), 0x7fff), { meshAddr: 0x7fff, cursor: 0x0100 })
    assert.strictEqual(place(1, 0x0100, new Set([0x0200]), 0x0200), "taken")
  })

  it("is the last one that is free, and then there is none", () => {
    const used = new Set(Array.from({ length: 254 }, (_, i) => i + 2))
    assert.deepStrictEqual(place(2, 77, used), { meshAddr: 1, cursor: 1 })
    assert.strictEqual(place(2, 1, used.add(1)), "full")
    assert.strictEqual(place(2, 1, used, 5), "taken")
  })

  it.prop(
    "is free and in its range, and the cursor points at a free one after it",
    {
      nodeType: Schema.Literals([1, 2]),
      cursor: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0x7fff })),
      used: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 300 })))
    },
    ({ cursor, nodeType, used }) => {
      const [first, last] = ranges[nodeType]
      const taken = new Set(used)
      const placed = place(nodeType, first + cursor % (last - first + 1), taken)
      assert(typeof placed === "object")
      for (const address of [placed.meshAddr, placed.cursor]) {
        assert.isFalse(taken.has(address))
        assert.isTrue(address >= first && address <= last)
      }
      assert.notStrictEqual(placed.meshAddr, placed.cursor)
    }
  )
})
