/**
 * The laws of `NodeBus`.
 */
import { maxNoticeBytes, NodeBus, type Notice } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Queue, Schema, type Scope } from "effect"
import { eventually } from "../Eventually.ts"

/** The nodes of one cloud. */
export interface NodeNetwork {
  /** Starts another node, which lives with the scope. */
  readonly node: Effect.Effect<NodeBus["Service"], unknown, Scope.Scope>
  /** Breaks the connections of all nodes to what carries their notices, which stays. Absent: they have none. */
  readonly breakConnections?: Effect.Effect<void, unknown> | undefined
}

class Network extends Context.Service<Network, NodeNetwork>()("@device-cloud/testing/NodeBusContract/Network") {}

type Heard = Notice | "missed"

const probe = "probe"

/** What the node hears from now on, without the probes and without its first `missed`. */
const hear = Effect.fnUntraced(function*(bus: NodeBus["Service"], from: NodeBus["Service"]) {
  const heard = yield* Queue.unbounded<Heard>()
  yield* bus.listen((notice) => void Queue.offerUnsafe(heard, notice))
  // A node hears the others a moment after its start.
  yield* eventually(
    Effect.andThen(from.publish([{ channel: probe, payload: "" }]), Queue.size(heard)),
    { until: (size) => size > 0, interval: "20 millis" }
  )
  const next = Effect.gen(function*() {
    while (true) {
      const notice = yield* Queue.take(heard)
      if (notice === "missed" || notice.channel !== probe) return notice
    }
  })
  // What is told to all comes behind the probes, `missed` of the start, and what others began with.
  yield* from.publish([{ channel: "begin", payload: bus.nodeId }])
  while (true) {
    const notice = yield* next
    if (notice !== "missed" && notice.payload === bus.nodeId) break
  }
  return { next, takeAll: (count: number) => Effect.all(Array.from({ length: count }, () => next)) }
})

const notice = (payload: string): Notice => ({ channel: "contract", payload })

const numbers = Array.from({ length: 300 }, (_, i) => String(i))

/** Runs the laws on networks that `network` makes. */
export const suite = (name: string, network: Effect.Effect<NodeNetwork, unknown, Scope.Scope>): void =>
  layer(Layer.effect(Network, network), { excludeTestServices: true })(`NodeBus: ${name}`, (it) => {
    it.effect("gives each node an id of its own", () =>
      Effect.gen(function*() {
        const { node } = yield* Network
        const ids = [(yield* node).nodeId, (yield* node).nodeId, (yield* node).nodeId]
        assert.strictEqual(new Set(ids).size, 3)
        for (const id of ids) assert.match(id, /^[A-Za-z0-9-]{1,40}$/)
      }))

    it.effect("keeps the order of what a node tells all, and of what it tells one, however many calls are under way", () =>
      Effect.gen(function*() {
        const { node } = yield* Network
        const [sender, receiver] = [yield* node, yield* node]
        const heard = yield* hear(receiver, sender)
        yield* Effect.forEach(numbers, (number) => sender.publish([notice(number)]), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* heard.takeAll(numbers.length), numbers.map(notice))
        yield* Effect.forEach(
          [numbers.slice(0, 100), numbers.slice(100)],
          (some) => sender.publish(some.map(notice), receiver.nodeId),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* heard.takeAll(numbers.length), numbers.map(notice))
      }))

    it.effect("tells only the node that is addressed", () =>
      Effect.gen(function*() {
        const { node } = yield* Network
        const [sender, receiver, other] = [yield* node, yield* node, yield* node]
        const [received, others] = [yield* hear(receiver, sender), yield* hear(other, sender)]
        // The end of this one's start is heard by the first, too.
        assert.deepInclude(yield* received.next, { channel: "begin" })
        yield* sender.publish([notice("nobody")], "gone")
        yield* sender.publish([notice("one")], receiver.nodeId)
        assert.deepStrictEqual(yield* received.next, notice("one"))
        yield* sender.publish([notice("other")], other.nodeId)
        assert.deepStrictEqual(yield* others.next, notice("other"))
        yield* sender.publish([notice("all")])
        assert.deepStrictEqual([yield* received.next, yield* others.next], [notice("all"), notice("all")])
      }))

    it.effect("carries the largest notice whole, and refuses a larger one", () =>
      Effect.gen(function*() {
        const { node } = yield* Network
        const [sender, receiver] = [yield* node, yield* node]
        const heard = yield* hear(receiver, sender)
        const channel = yield* Effect.provideService(NodeBus.channel("contract", Schema.String), NodeBus, sender)
        const largest = "°\n".repeat((maxNoticeBytes - 2) / 4)
        yield* channel.publish([largest], receiver.nodeId)
        assert.deepStrictEqual(yield* heard.next, notice(JSON.stringify(largest)))
        const { operation, retryable } = yield* Effect.flip(channel.publish(["small", `${largest}°°`]))
        assert.deepStrictEqual([operation, retryable], ["NodeBus.publish", false])
        yield* channel.publish(["next"])
        assert.deepStrictEqual(yield* heard.next, notice(`"next"`))
      }))

    it.effect("says `missed` after a broken connection, and goes on behind it", () =>
      Effect.gen(function*() {
        const { breakConnections, node } = yield* Network
        if (breakConnections === undefined) return
        const [sender, receiver] = [yield* node, yield* node]
        const heard = yield* hear(receiver, sender)
        yield* breakConnections
        assert.strictEqual(yield* heard.next, "missed")
        yield* eventually(sender.publish([notice("to all")]))
        yield* eventually(sender.publish([notice("to one")], receiver.nodeId))
        assert.deepStrictEqual(yield* heard.takeAll(2), [notice("to all"), notice("to one")])
      }))
  })
