import { assert, it } from "@effect/vitest"
import { Newcomers } from "../src/kernel/Newcomers.ts"

/** Rounds of an event loop, each of so many milliseconds. */
const rounds = (millis: number, patience: number) => {
  let now = 0
  let next: Array<() => void> = []
  let isCrowded = false
  const newcomers = new Newcomers({
    now: () => now,
    afterOthers: (run) => next.push(run),
    patience,
    isCrowded: () => isCrowded
  })
  const order: Array<string> = []
  const round = (someoneComes = false) => {
    now += millis
    if (someoneComes) newcomers.came()
    const due = next
    next = []
    for (const run of due) run()
  }
  const crowd = () => {
    isCrowded = true
  }
  return { crowd, newcomers, order, round }
}

it("work for strangers goes on after a round in which nobody came", () => {
  const { newcomers, order, round } = rounds(1, 100)
  newcomers.afterThem(() => order.push("first"))
  newcomers.afterThem(() => order.push("second"))
  for (let i = 0; i < 10; i++) round(true)
  assert.deepStrictEqual(order, [])
  round()
  assert.deepStrictEqual(order, ["first", "second"])
  newcomers.afterThem(() => order.push("third"))
  round()
  assert.lengthOf(order, 2)
  round()
  assert.deepStrictEqual(order, ["first", "second", "third"])
})

it("it goes on after the patience, though others still come", () => {
  const { newcomers, order, round } = rounds(1, 5)
  newcomers.afterThem(() => order.push("done"))
  for (let i = 0; i < 4; i++) round(true)
  assert.deepStrictEqual(order, [])
  round(true)
  assert.deepStrictEqual(order, ["done"])
})

it("it goes on when there is no room for others to wait", () => {
  const { crowd, newcomers, order, round } = rounds(1, 100)
  newcomers.afterThem(() => order.push("done"))
  for (let i = 0; i < 4; i++) round(true)
  assert.deepStrictEqual(order, [])
  crowd()
  round(true)
  assert.deepStrictEqual(order, ["done"])
})
