import type { DeviceId, DeviceIdentity } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { NodeSessions, type OwnedSession } from "../src/connection/NodeSessions.ts"

const deviceId = "device" as DeviceId

const sessionOf = (id: string): OwnedSession => ({
  id,
  epoch: 1,
  epochBefore: 0,
  connection: {
    device: { deviceId } as DeviceIdentity,
    ip: "192.0.2.1",
    deliver: () => Effect.void,
    backlog: () => undefined,
    close: () => Effect.void
  }
})

it("the latest session of a device counts; the end of an earlier one changes nothing", () => {
  const sessions = new NodeSessions()
  const [first, second] = [sessionOf("1"), sessionOf("2")]
  assert.isUndefined(sessions.open(first))
  assert.strictEqual(sessions.open(second), first)
  sessions.end(first)
  assert.strictEqual(sessions.current(deviceId), second)
  assert.deepStrictEqual(sessions.all(), [second])
  sessions.end(second)
  assert.isUndefined(sessions.current(deviceId))
  assert.strictEqual(sessions.size, 0)
})

it("the session before counts again when the next one fails, unless it has ended too", () => {
  const sessions = new NodeSessions()
  const [first, second, third] = [sessionOf("1"), sessionOf("2"), sessionOf("3")]
  sessions.open(first)
  sessions.end(second, sessions.open(second))
  assert.isTrue(sessions.isCurrent(first))
  const previous = sessions.open(third)
  sessions.end(first)
  sessions.end(third, previous)
  assert.isUndefined(sessions.current(deviceId))
})

it.effect("a listener hears of sessions until its scope closes", () =>
  Effect.gen(function*() {
    const sessions = new NodeSessions()
    const session = sessionOf("1")
    const heard: Array<string> = []
    yield* Effect.scoped(Effect.gen(function*() {
      yield* sessions.listen({
        attaching: ({ id }) => heard.push(`attaching ${id}`),
        attached: ({ id }, { waiting }) => heard.push(`attached ${id} ${waiting}`),
        handingOver: ({ id }) => Effect.sync(() => heard.push(`handing over ${id}`)),
        settled: ({ id }) => Effect.sync(() => heard.push(`settled ${id}`)),
        swept: ({ id }, { lastCommand }) => heard.push(`swept ${id} ${lastCommand}`),
        detached: ({ id }) => heard.push(`detached ${id}`),
        cutOff: (deviceId) => heard.push(`cut off ${deviceId}`)
      })
      sessions.open(session)
      const claim = { epoch: 1, epochBefore: 0, lastCommand: 7, desiredChanges: 0, waiting: true, previous: undefined }
      sessions.announce(session, claim)
      sessions.sweep(session, claim)
      sessions.cutOff(deviceId)
      yield* sessions.retire(session)
      sessions.end(session)
      assert.isFalse(sessions.end(session))
      yield* sessions.settle(session)
    }))
    sessions.open(session)
    assert.deepStrictEqual(heard, [
      "attaching 1",
      "attached 1 true",
      "swept 1 7",
      "cut off device",
      "handing over 1",
      "detached 1",
      "settled 1"
    ])
  }))
