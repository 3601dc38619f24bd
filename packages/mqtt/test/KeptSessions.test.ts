import { assert, it } from "@effect/vitest"
import { KeptSessions } from "../src/protocol/KeptSessions.ts"

const day = 86_400_000

const make = (bytes = 1_000_000) => {
  const clock = { now: 0 }
  const session = { epoch: 1 }
  const connectionOf = (client: string) => ({ projectId: client.split("/", 1)[0]!, session })
  return { clock, session, kept: new KeptSessions({ expiry: day, bytes }, () => clock.now, connectionOf) }
}

it("a session that was left ends after its time, one that was resumed does not", () => {
  const { clock, kept } = make()
  for (const client of ["left", "resumed"]) {
    kept.subscribe(client, "a", 1)
    kept.left(client)
  }
  clock.now = day - 1
  kept.resumed("resumed")
  clock.now = day
  assert.deepStrictEqual(kept.subscriptions("left"), [])
  kept.endExpired()
  assert.strictEqual(kept.size, 1)
  assert.deepStrictEqual(kept.subscriptions("resumed"), [{ topic: "a", qos: 1 }])
})

it("a session that is over when its client comes back begins anew", () => {
  const { clock, kept } = make()
  kept.subscribe("a", "x", 1)
  kept.begin("a", 1)
  kept.left("a")
  clock.now = day
  kept.resumed("a")
  assert.deepStrictEqual([kept.size, kept.bytes, kept.hasBegun("a", 1)], [0, 0, false])
})

it("a session ends when its client comes back from another server, and not when it comes back from this one", () => {
  const { kept, session } = make()
  kept.subscribe("a", "x", 1)
  // The client was thought lost, and has claimed its device again.
  session.epoch = 4
  kept.disconnects("a", session)
  kept.left("a")
  session.epoch = 5
  kept.connects("a", { epoch: 6, epochBefore: 4 })
  assert.isTrue(kept.isKept("a"))
  kept.connects("a", { epoch: 7, epochBefore: 6 })
  assert.isTrue(kept.isKept("a"))
  kept.left("a")
  kept.connects("a", { epoch: 9, epochBefore: 8 })
  assert.isFalse(kept.isKept("a"))
})

it("above the limit of bytes the sessions that were left first end first, and those of connected clients stay", () => {
  const { kept } = make(10_000)
  for (const client of ["p/connected", "p/first", "p/second", "p/third"]) {
    for (let i = 0; i < 10; i++) kept.subscribe(client, `${i}`.padEnd(200, "x"), 1)
    if (client !== "p/connected") kept.left(client)
  }
  assert.isAtMost(kept.bytes, 10_000)
  assert.deepStrictEqual(
    ["p/connected", "p/first", "p/second", "p/third"].map((client) => kept.subscriptions(client).length),
    [10, 0, 10, 10]
  )
})

it("above the limit of bytes the project with most makes room, with its connected clients if nobody else has left", () => {
  const { kept } = make(10_000)
  const open = (client: string, filters: number) => {
    for (let i = 0; i < filters; i++) kept.subscribe(client, `${i}`.padEnd(200, "x"), 1)
  }
  const counts = (...clients: ReadonlyArray<string>) => clients.map((client) => kept.subscriptions(client).length)
  open("quiet/left", 2)
  kept.left("quiet/left")
  open("loud/small", 2)
  kept.left("loud/small")
  for (const client of ["loud/a", "loud/b", "loud/c"]) open(client, 12)
  // Who has left goes before who is connected, the largest before others.
  assert.deepStrictEqual(counts("quiet/left", "loud/small", "loud/a", "loud/b", "loud/c"), [2, 0, 0, 12, 12])
  assert.isAtMost(kept.bytes, 10_000)
  open("loud/a", 1)
  assert.deepStrictEqual(counts("loud/a"), [0])
  kept.begin("loud/a", 1)
  assert.isTrue(kept.complete("loud/a", 1))
  kept.left("loud/a")
  open("loud/a", 1)
  assert.deepStrictEqual(counts("loud/a"), [1])
})

it("what is taken back is not counted any more", () => {
  const { kept } = make()
  kept.subscribe("a", "x", 1)
  const { bytes } = kept
  kept.subscribe("a", "y", 0)
  kept.subscribe("a", "y", 1)
  kept.unsubscribe("a", ["y", "z"])
  kept.begin("a", 7)
  kept.begin("a", 7)
  assert.isTrue(kept.complete("a", 7))
  assert.isFalse(kept.complete("a", 7))
  assert.strictEqual(kept.bytes, bytes)
  kept.end("a")
  assert.deepStrictEqual([kept.size, kept.bytes], [0, 0])
})

it("a packet that its client has not completed is kept for the client's time only", () => {
  const { clock, kept } = make()
  kept.begin("a", 1)
  kept.left("a")
  assert.isTrue(kept.hasBegun("a", 1))
  clock.now = day
  kept.endExpired()
  assert.strictEqual(kept.size, 0)
})

it("nothing is kept of a session without subscriptions and packets", () => {
  const { kept } = make()
  kept.subscribe("a", "x", 1)
  kept.unsubscribe("a", ["x"])
  kept.left("a")
  assert.deepStrictEqual([kept.size, kept.bytes], [0, 0])
})

it("a session that a connection has begun while the next one was let in is that of the next one", () => {
  let session = { epoch: 1 }
  const kept = new KeptSessions({ expiry: day, bytes: 1_000_000 }, () => 0, () => ({ projectId: "project", session }))
  kept.connects("a", { epoch: 2, epochBefore: 1 })
  kept.begin("a", 1)
  session = { epoch: 2 }
  kept.resumed("a")
  kept.connects("a", { epoch: 3, epochBefore: 2 })
  assert.isTrue(kept.hasBegun("a", 1))
})
