import {
  DeviceId,
  DeviceName,
  type DomainEvent,
  Feed,
  type FeedPage,
  feedStart,
  FeedStore,
  ProductKey,
  ProjectId,
  SceneId,
  StoreError
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Ref, Stream } from "effect"
import { TestClock } from "effect/testing"

const [one, two] = [ProjectId.make("one"), ProjectId.make("two")]

const event = (projectId: ProjectId, executionId: string): DomainEvent => ({
  _tag: "SceneExecuted",
  projectId,
  device: null,
  at: 0,
  sceneId: SceneId.make("scene"),
  sceneName: "Cold",
  executionId,
  status: "succeeded",
  reason: ""
})

const nameOf = (event: DomainEvent) => event._tag === "SceneExecuted" ? event.executionId : event._tag

/** What reads of the feed do. */
class Reads extends Context.Service<Reads, {
  readonly count: Ref.Ref<number>
  readonly change: Ref.Ref<(page: FeedPage) => Effect.Effect<FeedPage, StoreError>>
}>()("test/Reads") {}

const stores = Layer.effectContext(Effect.gen(function*() {
  const store = Context.get(
    yield* Layer.build(StorageMemory.layerFeedStore.pipe(Layer.provide(Layer.fresh(StorageMemory.layerTables)))),
    FeedStore
  )
  const count = yield* Ref.make(0)
  const change = yield* Ref.make<(page: FeedPage) => Effect.Effect<FeedPage, StoreError>>(Effect.succeed)
  const read: typeof store.read = (options) =>
    Ref.update(count, (count) => count + 1).pipe(
      Effect.andThen(Effect.all([store.read(options), Ref.get(change)])),
      Effect.flatMap(([page, change]) => change(page))
    )
  return Context.make(FeedStore, { ...store, read }).pipe(Context.add(Reads, { count, change }))
}))

const feed = Feed.layer.pipe(Layer.provideMerge(stores))

/** Follows until the scope closes; returns what was heard. */
const follow = Effect.fnUntraced(function*(projectId: ProjectId | undefined) {
  const heard: Array<string> = []
  yield* (yield* Feed).follow(projectId, {
    hear: ({ event }) => void heard.push(nameOf(event)),
    missed: () => void heard.push("missed")
  })
  return heard
})

it.effect("followers hear the events of their project, in order, from when they join until they leave", () =>
  Effect.gen(function*() {
    const { append } = yield* Feed
    yield* append([event(one, "before")])
    const ofOne = yield* follow(one)
    const all = yield* follow(undefined)
    const left = yield* Effect.scoped(Effect.gen(function*() {
      const ofTwo = yield* follow(two)
      yield* append([event(one, "a"), event(two, "b")])
      yield* append([event(one, "c")])
      yield* TestClock.adjust("1 second")
      return ofTwo
    }))
    yield* append([event(two, "d")])
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(ofOne, ["a", "c"])
    assert.deepStrictEqual(all, ["a", "b", "c", "d"])
    assert.deepStrictEqual(left, ["b"])
  }).pipe(Effect.scoped, Effect.provide(feed)))

it.effect("the store is read while somebody follows, and not else", () =>
  Effect.gen(function*() {
    const { append } = yield* Feed
    const { count } = yield* Reads
    yield* append([event(one, "a")])
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Ref.get(count), 0)
    yield* Effect.scoped(follow(one))
    yield* TestClock.adjust("1 second")
    const read = yield* Ref.get(count)
    yield* append([event(one, "b")])
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Ref.get(count), read)
    // Nothing of the time between belongs to a new follower.
    const heard = yield* follow(one)
    yield* append([event(one, "c")])
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(heard, ["c"])
  }).pipe(Effect.scoped, Effect.provide(feed)))

it.effect("followers miss nothing while the store fails, and are told what the feed has lost", () =>
  Effect.gen(function*() {
    const { append } = yield* Feed
    const { change } = yield* Reads
    const heard = yield* follow(one)
    yield* Ref.set(change, () => new StoreError({ operation: "FeedStore.read", retryable: true, cause: "gone" }))
    yield* append([event(one, "a")])
    yield* TestClock.adjust("10 seconds")
    // A read that waits for a fiber which somebody interrupts ends as it does.
    yield* Ref.set(change, () => Effect.flatMap(Effect.forkChild(Effect.interrupt), Fiber.join))
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(heard, [])
    yield* Ref.set(change, Effect.succeed)
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(heard, ["a"])
    yield* Ref.set(change, (page) => Effect.succeed({ ...page, isGap: page.entries.length > 0 }))
    yield* append([event(one, "b")])
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(heard, ["a", "missed", "b"])
  }).pipe(Effect.scoped, Effect.provide(feed)))

it.effect("a stream emits what is stored after its place, then what comes", () =>
  Effect.gen(function*() {
    const { append, stream } = yield* Feed
    yield* append(Array.from({ length: 1200 }, (_, i) => event(i % 2 === 0 ? one : two, String(i))))
    const emitted = yield* stream({ projectId: one, after: feedStart }).pipe(
      Stream.take(601),
      Stream.map(({ event }) => nameOf(event)),
      Stream.runCollect,
      Effect.forkChild
    )
    yield* TestClock.adjust("1 second")
    yield* append([event(two, "other"), event(one, "last")])
    yield* TestClock.adjust("1 second")
    const names = yield* Fiber.join(emitted)
    assert.deepStrictEqual(names, [...Array.from({ length: 600 }, (_, i) => String(2 * i)), "last"])
  }).pipe(Effect.provide(feed)))

it.effect("a follower of devices hears their events alone, and that events are missing", () =>
  Effect.gen(function*() {
    const { append, follow } = yield* Feed
    const of = (name: string): DomainEvent => ({
      _tag: "PropertiesReported",
      device: {
        deviceId: DeviceId.make(name),
        projectId: one,
        productKey: ProductKey.make("product"),
        deviceName: DeviceName.make(name)
      },
      at: 0,
      properties: {}
    })
    const heard: Array<string> = []
    yield* Effect.scoped(Effect.gen(function*() {
      yield* follow(one, {
        deviceIds: [DeviceId.make("a"), DeviceId.make("b")],
        hear: ({ event }) => void heard.push(event.device!.deviceId),
        missed: () => void heard.push("missed")
      })
      yield* append([of("a"), of("c"), event(one, "without a device"), of("b")])
      yield* TestClock.adjust("1 second")
      yield* Ref.set((yield* Reads).change, (page) => Effect.succeed({ ...page, isGap: true }))
      yield* TestClock.adjust("1 second")
    }))
    assert.deepStrictEqual(heard.slice(0, 3), ["a", "b", "missed"])
    assert.deepStrictEqual(new Set(heard.slice(3)), new Set(["missed"]))
  }).pipe(Effect.provide(feed)))
