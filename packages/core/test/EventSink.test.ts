import {
  defaultProjectId,
  type DomainEvent,
  EventSink,
  EventSinkError,
  type FeedEntry,
  FeedReaderStore,
  FeedStore
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Metric, Option, Ref, Scope } from "effect"
import { TestClock } from "effect/testing"

const event = (number: number): DomainEvent => ({
  _tag: "SceneExecuted",
  projectId: defaultProjectId,
  device: null,
  at: number,
  sceneId: "s",
  sceneName: "s",
  executionId: String(number),
  status: "succeeded",
  reason: ""
})

const stores = StorageMemory.layer

const append = (...numbers: ReadonlyArray<number>) => FeedStore.use((feed) => feed.append(numbers.map(event)))

const numbersOf = (entries: ReadonlyArray<FeedEntry>) => entries.map(({ event }) => event.at)

/** Starts a sink; returns the scope that ends it. */
const start = Effect.fnUntraced(function*(sink: Omit<EventSink, "name">) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* Layer.buildWithScope(Layer.fresh(EventSink.layer({ name: "test", ...sink })), scope)
  return scope
})

/** A sink that keeps what it takes. */
const keeping = Effect.gen(function*() {
  const taken = yield* Ref.make<ReadonlyArray<number>>([])
  const deliver = (entries: ReadonlyArray<FeedEntry>) =>
    Ref.update(taken, (before) => [...before, ...numbersOf(entries)])
  return { taken: Ref.get(taken), deliver }
})

it.effect("a sink gets what is there, what comes, and after a restart what it has not had", () =>
  Effect.gen(function*() {
    const { deliver, taken } = yield* keeping
    yield* append(1, 2)
    const first = yield* start({ deliver })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* taken, [1, 2])
    yield* append(3)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* taken, [1, 2, 3])
    yield* Scope.close(first, Exit.void)
    yield* append(4)
    yield* start({ deliver })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* taken, [1, 2, 3, 4])
  }).pipe(Effect.provide(stores)))

it.effect("a sink that returns something else than an Effect has taken nothing", () =>
  Effect.gen(function*() {
    // TypeScript forbids it; JavaScript does not.
    const results: Array<unknown> = [[], Promise.resolve(), undefined]
    const { deliver, taken } = yield* keeping
    yield* append(1, 2)
    yield* start({ deliver: (entries) => results.length > 0 ? (results.shift() as never) : deliver(entries) })
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual([results, yield* taken], [[], [1, 2]])
  }).pipe(Effect.provide(stores)))

it.effect("what a sink does not take comes again, whole, until it takes it; the log tells why, and of the end", () =>
  Effect.gen(function*() {
    const isOpen = yield* Ref.make(false)
    const attempts: Array<ReadonlyArray<number>> = []
    const messages: Array<unknown> = []
    const logger = Logger.layer([Logger.make(({ message }) => void messages.push(message))])
    yield* append(1, 2)
    const metrics = new Map()
    yield* start({
      deliver: (entries) =>
        Effect.flatMap(Ref.get(isOpen), (isOpen) => {
          attempts.push(numbersOf(entries))
          return isOpen ? Effect.void : new EventSinkError({
            message: attempts.length === 1 ? "not there" : "closed"
          })
        })
    }).pipe(Effect.provide(logger), Effect.provideService(Metric.MetricRegistry, metrics))
    const gauges = Metric.snapshot.pipe(
      Effect.provideService(Metric.MetricRegistry, metrics),
      Effect.map((all) =>
        ["device_cloud_sink_lag_events", "device_cloud_sink_lag_seconds"].map((id) => {
          const { state } = all.find((metric) => metric.id === id)!
          return "value" in state ? state.value : undefined
        })
      )
    )
    yield* TestClock.adjust("1 minute")
    assert.isAbove(attempts.length, 5)
    const [lag, age] = yield* gauges
    assert.strictEqual(lag, 2)
    assert.isAbove(Number(age), 50)
    yield* append(3)
    yield* Ref.set(isOpen, true)
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(attempts[0], [1, 2])
    assert.deepStrictEqual(attempts.at(-1), [1, 2, 3])
    const warning = "The event sink test cannot take events; trying again"
    assert.deepStrictEqual(messages, [[warning], [warning], ["The event sink test takes events again"]])
    assert.deepStrictEqual(yield* gauges, [0, 0])
  }).pipe(Effect.provide(stores)))

it.effect("a sink that dies in the middle gets the same again", () =>
  Effect.gen(function*() {
    const attempts: Array<ReadonlyArray<number>> = []
    yield* append(1)
    yield* start({
      deliver: (entries) =>
        Effect.suspend(() => {
          attempts.push(numbersOf(entries))
          return attempts.length === 1 ? Effect.die("defect") : Effect.void
        })
    })
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(attempts, [[1], [1]])
  }).pipe(Effect.provide([stores, Logger.layer([])])))

it.effect("one node feeds a sink, also while an event takes long; another goes on at once when it stops", () =>
  Effect.gen(function*() {
    const { deliver, taken } = yield* keeping
    yield* append(1)
    const first = yield* start({ deliver: () => Effect.never })
    yield* TestClock.adjust("1 second")
    yield* start({ deliver })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* taken, [])
    yield* Scope.close(first, Exit.void)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* taken, [1])
  }).pipe(Effect.provide(stores)))

it.effect("a node takes over from one that is silent, which changes nothing when it wakes", () =>
  Effect.gen(function*() {
    const { deliver, taken } = yield* keeping
    const readers = yield* FeedReaderStore
    const frozen = Option.getOrThrow(yield* readers.claim({ name: "test", leaseMillis: 5000 }))
    yield* append(1)
    yield* start({ deliver })
    yield* TestClock.adjust("4 seconds")
    assert.deepStrictEqual(yield* taken, [])
    yield* TestClock.adjust("3 seconds")
    assert.deepStrictEqual(yield* taken, [1])
    assert.isFalse(yield* readers.advance({ ...frozen, name: "test", leaseMillis: 5000 }))
    yield* append(2)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* taken, [1, 2])
  }).pipe(Effect.provide(stores)))

it.effect("a node that has lost its reader stops, and does not store where it has come to", () =>
  Effect.gen(function*() {
    const readers = yield* FeedReaderStore
    const stopped = yield* Ref.make(false)
    yield* append(1)
    yield* start({ deliver: () => Effect.onInterrupt(Effect.never, () => Ref.set(stopped, true)) })
    yield* TestClock.adjust("1 second")
    // As if the node had not been able to renew its lease: it ends, and another claims the reader.
    yield* readers.release({ name: "test", epoch: 1 })
    const other = Option.getOrThrow(yield* readers.claim({ name: "test", leaseMillis: 600_000 }))
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(yield* Ref.get(stopped))
    assert.strictEqual(other.place, "")
  }).pipe(Effect.provide(stores)))
