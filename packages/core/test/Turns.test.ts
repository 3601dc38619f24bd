import { assert, it } from "@effect/vitest"
import { Turns } from "../src/kernel/Turns.ts"

/** Turns under a clock that each request moves by so many milliseconds, and the order of the starts. */
const turnsOf = (cost: number, options: { readonly maxRuns?: number } = {}) => {
  let now = 0
  const turns = new Turns({ now: () => now, afterOthers: setImmediate, ...options })
  const order: Array<string> = []
  const start = (name: string) => {
    now += cost
    order.push(name)
  }
  return {
    order,
    /** Starts a request, at once or in its turn. */
    request: (name: string, address: string, accessKey = "") => {
      if (turns.mayRun()) start(name)
      else turns.wait(address, accessKey, () => start(name))
    }
  }
}

/** The check phases of the event loop go by, so many. */
const phases = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

it("requests run at once while there is time, and then wait for the next phase of the event loop", async () => {
  const { order, request } = turnsOf(1.5)
  for (let i = 0; i < 4; i++) request(`${i}`, "a")
  assert.deepStrictEqual(order, ["0", "1"])
  await phases(1)
  assert.deepStrictEqual(order, ["0", "1", "2", "3"])
})

it("no more run in a phase than may, however little time they take", async () => {
  const { order, request } = turnsOf(0, { maxRuns: 2 })
  for (let i = 0; i < 5; i++) request(`${i}`, "a")
  assert.deepStrictEqual(order, ["0", "1"])
  await phases(1)
  assert.deepStrictEqual(order, ["0", "1", "2", "3"])
  await phases(1)
  assert.deepStrictEqual(order, ["0", "1", "2", "3", "4"])
})

it("addresses take turns, and at one address access keys", async () => {
  const { order, request } = turnsOf(10)
  for (let i = 0; i < 3; i++) request(`many${i}`, "a", "one")
  request("other key", "a", "two")
  request("other address", "b")
  assert.deepStrictEqual(order, ["many0"])
  await phases(6)
  assert.deepStrictEqual(order, ["many0", "many1", "other address", "other key", "many2"])
})

it("nothing is late when the turn is over and nobody waits", async () => {
  const { order, request } = turnsOf(10)
  request("first", "a")
  await phases(2)
  request("second", "a")
  assert.deepStrictEqual(order, ["first", "second"])
})
