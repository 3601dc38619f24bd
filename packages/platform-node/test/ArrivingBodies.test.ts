import { assert, it } from "@effect/vitest"
import { ArrivingBodies } from "../src/ArrivingBodies.ts"

const make = () => {
  const clock = { now: 0 }
  const refused: Array<string> = []
  const bodies = new ArrivingBodies(100, 1000, () => clock.now)
  const begin = (name: string, address: string) =>
    bodies.begin(address, ({ reason }) => refused.push(`${name} ${reason}`))
  return { begin, bodies, clock, refused }
}

it("when too many bytes arrive, the oldest body of the address that sends most is refused", () => {
  const { begin, bodies, refused } = make()
  const bystander = begin("bystander", "b")
  bodies.grows(bystander, 20)
  const [first, second] = [begin("first", "a"), begin("second", "a")]
  bodies.grows(first, 30)
  bodies.grows(second, 40)
  assert.deepStrictEqual([refused, bodies.bytes], [[], 90])
  bodies.grows(second, 20)
  assert.deepStrictEqual([refused, bodies.bytes], [["first crowded"], 80])
  bodies.end(first)
  bodies.end(second)
  bodies.end(second)
  assert.strictEqual(bodies.bytes, 20)
})

it("a body that is larger than all may be is refused itself", () => {
  const { begin, bodies, refused } = make()
  bodies.grows(begin("large", "a"), 101)
  assert.deepStrictEqual([refused, bodies.bytes], [["large crowded"], 0])
})

it("a body that takes too long is refused, once", () => {
  const { begin, bodies, clock, refused } = make()
  bodies.grows(begin("slow", "a"), 1)
  clock.now = 500
  begin("later", "a")
  clock.now = 1000
  bodies.refuseSlow()
  bodies.refuseSlow()
  assert.deepStrictEqual([refused, bodies.bytes], [["slow slow"], 0])
})
