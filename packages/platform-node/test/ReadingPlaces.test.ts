import { assert, it } from "@effect/vitest"
import { ReadingPlaces } from "../src/ReadingPlaces.ts"

const make = (count: number, ofAddress?: number) => {
  const resumed: Array<string> = []
  const places = new ReadingPlaces(count, ofAddress)
  const reader = (name: string, address: string) => ({ address, resume: () => resumed.push(name) })
  return { places, reader, resumed }
}

it("a reader that ends makes room, first for addresses with fewer places", () => {
  const { places, reader, resumed } = make(2)
  const [first, second, third] = [reader("first", "a"), reader("second", "a"), reader("third", "a")]
  assert.deepStrictEqual([first, second, third, reader("other", "b")].map((each) => places.take(each)), [
    true,
    true,
    false,
    false
  ])
  assert.isTrue(places.take(first))
  places.leave(first)
  assert.deepStrictEqual(resumed, ["other"])
  places.leave(second)
  assert.deepStrictEqual(resumed, ["other", "third"])
})

it("a reader from which nothing comes loses its place, and waits when something comes", () => {
  const { places, reader, resumed } = make(1)
  const [idle, busy] = [reader("idle", "a"), reader("busy", "b")]
  assert.isTrue(places.take(idle))
  assert.isFalse(places.take(busy))
  places.takeFromIdle()
  assert.deepStrictEqual(resumed, [])
  places.takeFromIdle()
  assert.deepStrictEqual(resumed, ["busy"])
  assert.isFalse(places.take(idle))
  places.leave(busy)
  assert.deepStrictEqual(resumed, ["busy", "idle"])
})

it("one that leaves while it waits is not resumed", () => {
  const { places, reader, resumed } = make(1)
  const [first, second] = [reader("first", "a"), reader("second", "a")]
  places.take(first)
  places.take(second)
  places.leave(second)
  places.leave(first)
  assert.deepStrictEqual(resumed, [])
})

it("an address has its share of the places and no more, and keeps nobody else from the others", () => {
  const { places, reader, resumed } = make(3, 2)
  const [first, second] = [reader("first", "a"), reader("second", "a")]
  assert.deepStrictEqual([first, second, reader("third", "a"), reader("other", "b")].map((each) => places.take(each)), [
    true,
    true,
    false,
    true
  ])
  places.leave(first)
  assert.deepStrictEqual(resumed, ["third"])
  assert.isFalse(places.take(reader("fourth", "a")))
  places.leave(second)
  assert.deepStrictEqual(resumed, ["third", "fourth"])
})
