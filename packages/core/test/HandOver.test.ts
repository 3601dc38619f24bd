import type { DeviceId, DeviceIdentity } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import * as HandOver from "../src/connection/HandOver.ts"
import { NodeSessions, type OwnedSession } from "../src/connection/NodeSessions.ts"

const deviceId = "device" as DeviceId

const sessionOf = (epoch: number): OwnedSession => ({
  id: String(epoch),
  epoch,
  epochBefore: 0,
  connection: {
    device: { deviceId } as DeviceIdentity,
    ip: "192.0.2.1",
    deliver: () => Effect.void,
    backlog: () => undefined,
    close: () => Effect.void
  }
})

/** A node that writes down what it tells the others. Sessions end while `drained` is open. */
const makeNode = Effect.gen(function*() {
  const sessions = new NodeSessions()
  const told: Array<string> = []
  const drained = Latch.makeUnsafe(true)
  yield* sessions.listen({ settled: () => Effect.asVoid(drained.await) })
  const handOver = yield* HandOver.make(sessions, {
    replaced: (_, epoch, nodeId) => Effect.sync(() => told.push(`replaced by ${epoch}, ${nodeId}`)),
    released: (_, epoch, nodeId) => Effect.sync(() => told.push(`released for ${epoch}, ${nodeId}`))
  })
  /** Begins a session, and returns the fiber that waits for the earlier ones. */
  const begin = (session: OwnedSession, nodeId?: string) =>
    Effect.forkScoped(handOver.begin(session, sessions.open(session), nodeId) ?? Effect.void, {
      startImmediately: true
    })
  return { handOver, sessions, told, drained, begin }
})

/** Shorter than any session waits. */
const moment = TestClock.adjust("100 millis")

it.effect("a session waits for the release that the one before it on this node waits for", () =>
  Effect.gen(function*() {
    const { begin, handOver, told } = yield* makeNode
    yield* begin(sessionOf(3), "B")
    assert.deepStrictEqual(told, ["replaced by 3, B"])
    const waiting = yield* begin(sessionOf(4))
    yield* moment
    assert.isUndefined(waiting.pollUnsafe())
    handOver.heardReleased(deviceId, 3)
    yield* Fiber.join(waiting)
  }).pipe(Effect.scoped))

it.effect("of two nodes that ask each other, none waits for the other's answer", () =>
  Effect.gen(function*() {
    const { begin, handOver, told } = yield* makeNode
    yield* begin(sessionOf(1))
    yield* begin(sessionOf(3), "B")
    yield* handOver.heardReplaced(deviceId, 2, "B")
    yield* moment
    assert.include(told, "released for 2, B")
  }).pipe(Effect.scoped))

it.effect("a session that counted before one that is being stored is released when it has ended", () =>
  Effect.gen(function*() {
    const { begin, drained, handOver, sessions, told } = yield* makeNode
    const earlier = sessionOf(1)
    yield* begin(earlier)
    sessions.open(sessionOf(0))
    drained.closeUnsafe()
    yield* handOver.heardReplaced(deviceId, 2, "B")
    yield* moment
    assert.isFalse(sessions.isLive(earlier))
    assert.deepStrictEqual(told, [])
    drained.openUnsafe()
    yield* moment
    assert.deepStrictEqual(told, ["released for 2, B"])
  }).pipe(Effect.scoped))

it.effect("a session learns whether the node before has said that it has released the device", () =>
  Effect.gen(function*() {
    const { begin, handOver } = yield* makeNode
    const answered = yield* begin(sessionOf(3), "B")
    handOver.heardReleased(deviceId, 3)
    assert.isTrue(yield* Fiber.join(answered))
    const unanswered = yield* begin(sessionOf(4), "B")
    yield* TestClock.adjust("1 second")
    assert.isFalse(yield* Fiber.join(unanswered))
  }).pipe(Effect.scoped))
