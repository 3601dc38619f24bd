import { makeKnownAddresses } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { type ArrivalLimits, Arrivals } from "../src/session/Arrivals.ts"

const generous: ArrivalLimits = {
  connections: 1000,
  reservedConnections: 0,
  unauthenticated: 1000,
  unauthenticatedOfAddress: 1000,
  unauthenticatedBytes: 1_000_000
}

const make = (limits: Partial<ArrivalLimits>) => {
  const clock = { now: 0 }
  const turnedAway: Array<string> = []
  const closed: Array<string> = []
  const now = () => clock.now
  const arrivals = new Arrivals(
    { ...generous, ...limits },
    now,
    makeKnownAddresses(now),
    (reason) => turnedAway.push(reason)
  )
  /** `bytesRead`: what the client has said. */
  const come = (name: string, address = "stranger", bytesRead = 0) =>
    arrivals.admit(address, { bytesRead, destroy: () => closed.push(name) })
  const know = (address: string) => {
    const arrival = come(address, address)!
    arrivals.authenticated(arrival)
    arrivals.left(arrival)
  }
  return { arrivals, clock, closed, come, know, turnedAway }
}

it("the connection that has waited longest makes room, for its address and for all", () => {
  const { arrivals, closed, come, turnedAway } = make({ unauthenticated: 4, unauthenticatedOfAddress: 2 })
  for (const name of ["a1", "a2", "b1", "b2"]) come(name, name[0])
  come("b3", "b")
  assert.deepStrictEqual(closed, ["b1"])
  come("c1", "c")
  assert.deepStrictEqual(closed, ["b1", "a1"])
  assert.deepStrictEqual([arrivals.open, arrivals.unauthenticated], [4, 4])
  assert.deepStrictEqual(turnedAway, ["made room", "made room"])
})

it("all devices behind an address that is known may come back at once", () => {
  const { closed, come, know } = make({ unauthenticated: 4, unauthenticatedOfAddress: 2 })
  know("home")
  for (const name of ["one", "two", "three", "four"]) assert.isDefined(come(name, "home"))
  assert.deepStrictEqual(closed, [])
  come("five", "home")
  assert.deepStrictEqual(closed, ["one"])
})

it("a connection that is judged does not make room, and one that has begun to speak does after two seconds", () => {
  const { arrivals, clock, closed, come } = make({ unauthenticated: 2 })
  arrivals.judged(come("judged")!)
  come("speaking", "stranger", 1)
  assert.strictEqual(come("refused"), undefined)
  assert.deepStrictEqual(closed, [])
  clock.now = 2000
  assert.isDefined(come("next"))
  assert.deepStrictEqual(closed, ["speaking"])
})

it("a part of all connections is for addresses from which a device was authenticated lately", () => {
  const { arrivals, come, closed, know } = make({ connections: 3, reservedConnections: 1 })
  know("home")
  for (const name of ["one", "two"]) arrivals.judged(come(name)!)
  assert.strictEqual(come("three"), undefined)
  assert.isDefined(come("four", "home"))
  // No connection is left, but a known one waits: another known one takes its place.
  assert.strictEqual(come("five"), undefined)
  assert.isDefined(come("six", "home"))
  assert.deepStrictEqual([closed, arrivals.open], [["four"], 3])
})

it("strangers make room before those who are known", () => {
  const { come, closed, know } = make({ connections: 2 })
  know("home")
  come("known", "home")
  come("stranger")
  come("next", "home")
  assert.deepStrictEqual(closed, ["stranger"])
})

it("an address is remembered for half a day at least, and for a day at most", () => {
  let now = 0
  const known = makeKnownAddresses(() => now)
  known.add("a")
  now = 43_200_000
  assert.deepStrictEqual([known.has("a"), known.has("b")], [true, false])
  now = 86_400_000
  assert.isFalse(known.has("a"))
  known.add("b")
  now = 10 * 86_400_000
  assert.isFalse(known.has("b"))
})

it("above the limit of bytes the connection that has held some for longest ends", () => {
  const { arrivals, closed, come } = make({ unauthenticatedBytes: 100 })
  come("silent")
  const [first, second] = [come("first")!, come("second")!]
  arrivals.holds(first, 60)
  arrivals.holds(second, 40)
  assert.deepStrictEqual(closed, [])
  arrivals.holds(second, 50)
  assert.deepStrictEqual([closed, arrivals.bytes], [["first"], 50])
  arrivals.authenticated(second)
  assert.strictEqual(arrivals.bytes, 0)
  arrivals.holds(second, 1000)
  assert.strictEqual(arrivals.bytes, 0)
})

it("when those that are judged hold all bytes, one that would hold more ends itself", () => {
  const { arrivals, closed, come } = make({ unauthenticatedBytes: 100 })
  const judged = [come("one")!, come("two")!]
  for (const each of judged) {
    arrivals.holds(each, 50)
    arrivals.judged(each)
  }
  arrivals.holds(judged[0]!, 90)
  assert.deepStrictEqual([closed, arrivals.bytes], [["one"], 50])
  const waiting = come("waiting")!
  arrivals.holds(judged[1]!, 100)
  arrivals.holds(waiting, 10)
  assert.deepStrictEqual([closed, arrivals.bytes], [["one", "waiting"], 100])
})

it("a connection counts until it has ended, once", () => {
  const { arrivals, come } = make({})
  const [one, two] = [come("one")!, come("two")!]
  arrivals.authenticated(one)
  arrivals.authenticated(one)
  assert.deepStrictEqual([arrivals.open, arrivals.unauthenticated], [2, 1])
  for (const each of [one, two, one, two]) arrivals.left(each)
  assert.deepStrictEqual([arrivals.open, arrivals.unauthenticated], [0, 0])
  arrivals.authenticated(two)
  arrivals.judged(two)
  assert.deepStrictEqual([arrivals.open, arrivals.unauthenticated], [0, 0])
})
