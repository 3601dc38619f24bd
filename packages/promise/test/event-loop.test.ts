import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Option, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type CloudEvent, eventsOf, type ReadEvents } from "../src/EventLoop.ts"

const event = (id: string): CloudEvent => ({
  id,
  type: "lifecycle",
  data: { time: 0, action: "create", product_key: "p", device_name: "d", device_id: "i" }
})

type Failure = "away" | "lost" | "refused"

/** A source whose reads are given, and what was acknowledged. */
const sourceOf = Effect.fnUntraced(function*(reads: ReadonlyArray<ReadEvents | Failure>, ack?: Failure) {
  const queue = yield* Queue.unbounded<ReadEvents | Failure>()
  yield* Queue.offerAll(queue, reads)
  const acknowledged: Array<string> = []
  const source = {
    read: Effect.flatMap(
      Queue.take(queue),
      (next) => typeof next === "string" ? Effect.fail({ reason: next }) : Effect.succeed(next)
    ),
    acknowledge: (cursor: string) => {
      acknowledged.push(cursor)
      return ack === undefined ? Effect.void : Effect.fail({ reason: ack })
    },
    isLost: ({ reason }: { readonly reason: Failure }) => reason === "lost"
  }
  return { source, acknowledged }
})

const isPassing = ({ reason }: { readonly reason: Failure }) => reason === "away"

const batch = (cursor: string, ...ids: ReadonlyArray<string>): ReadEvents => ({
  events: ids.map(event),
  cursor,
  isGap: false
})

it.effect("says every 3 seconds that it is there, while an event is dealt with", () =>
  Effect.gen(function*() {
    const { acknowledged, source } = yield* sourceOf([batch("1-b", "a", "b")])
    const seen = yield* Queue.unbounded<string>()
    const loop = yield* eventsOf(Effect.succeed(source), isPassing).pipe(
      Stream.runForEach(({ id }) => Effect.andThen(Queue.offer(seen, id), id === "b" ? Effect.never : Effect.void)),
      Effect.forkChild
    )
    assert.deepStrictEqual([yield* Queue.take(seen), yield* Queue.take(seen)], ["a", "b"])
    yield* TestClock.adjust("7 seconds")
    assert.deepStrictEqual(acknowledged, ["1-a", "1-a"])
    yield* Fiber.interrupt(loop)
    assert.deepStrictEqual(acknowledged, ["1-a", "1-a", "1-a"])
  }))

it.effect("waits while the server is away, and fails with any other failure", () =>
  Effect.gen(function*() {
    const { acknowledged, source } = yield* sourceOf(["away", "away", batch("1-a", "a"), "refused"])
    const seen: Array<string> = []
    const loop = yield* eventsOf(Effect.succeed(source), isPassing).pipe(
      Stream.runForEach(({ id }) => Effect.sync(() => seen.push(id))),
      Effect.flip,
      Effect.forkChild
    )
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* Fiber.join(loop), { reason: "refused" })
    assert.deepStrictEqual([seen, acknowledged], [["a"], ["1-a"]])
  }))

it.effect("begins when the server comes that was away, and fails with any other failure", () =>
  Effect.gen(function*() {
    const { source } = yield* sourceOf([batch("1-a", "a")])
    const failures: Array<Failure> = ["away", "away", "refused", "away"]
    const open = Effect.suspend(() => {
      const reason = failures.shift()
      return reason === undefined ? Effect.succeed(source) : Effect.fail({ reason })
    })
    const first = Stream.runHead(eventsOf(open, isPassing))
    const refused = yield* Effect.forkChild(Effect.flip(first))
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* Fiber.join(refused), { reason: "refused" })
    const given = yield* Effect.forkChild(first)
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* Fiber.join(given), Option.some(event("a")))
  }))

it.effect("goes on when another worker has taken its part", () =>
  Effect.gen(function*() {
    const { source } = yield* sourceOf([batch("1-a", "a"), batch("2-a", "a")], "lost")
    const seen = yield* Stream.runCollect(Stream.take(eventsOf(Effect.succeed(source), isPassing), 2))
    assert.deepStrictEqual(seen.map(({ id }) => id), ["a", "a"])
  }))

it.effect("tells of events that were dropped, and goes on behind them", () =>
  Effect.gen(function*() {
    let missed = 0
    const { acknowledged, source } = yield* sourceOf([{ events: [], cursor: "1-z", isGap: true }, batch("2-a", "a")])
    yield* Stream.runDrain(Stream.take(eventsOf(Effect.succeed(source), isPassing, () => missed++), 1))
    assert.deepStrictEqual([missed, acknowledged], [1, ["1-z"]])
  }))
