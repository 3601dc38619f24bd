import {
  defaultProjectId,
  DeviceCloud,
  FeedStore,
  LookInterval,
  SubscriptionReader,
  Subscriptions,
  SubscriptionStore,
  WebhookClient,
  WebhookError,
  type WebhookRequest,
  type WebhookResponse
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, type Duration, Effect, Exit, Layer, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"

/** A receiver that the test tells what to answer. */
class Receiver {
  readonly requests: Array<WebhookRequest> = []
  answer: WebhookResponse | WebhookError = { status: 204, body: "" }

  readonly client = WebhookClient.of({
    refuse: (url) => url.startsWith("http://10.") ? "Expected a public address" : undefined,
    send: (request) =>
      Effect.suspend(() => {
        assert.isTrue(request.admits(["192.0.2.1:443"]))
        this.requests.push(request)
        return this.answer instanceof WebhookError ? Effect.fail(this.answer) : Effect.succeed(this.answer)
      })
  })

  /** What was sent since the last call. */
  take() {
    return this.requests.splice(0).map(({ body, headers }) => ({ id: headers["webhook-id"]!, ...JSON.parse(body) }))
  }
}

/** The values of `n`. */
// oxlint-disable-next-line no-explicit-any -- a test looks into whatever came
const numbers = ({ events }: any): ReadonlyArray<number> =>
  // oxlint-disable-next-line no-explicit-any -- a test looks into whatever came
  events.map(({ data }: any) => data.properties.n.value)

/** Lets time pass in steps, as nodes look for work. */
const pass = (duration: Duration.Input, times = 1) => Effect.repeat(TestClock.adjust(duration), { times: times - 1 })

/** Lets time pass until what is waited for is there: on a busy machine the clock goes on before all work is done. */
const passUntil = <E, R>(duration: Duration.Input, isThere: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function*() {
    while (!(yield* isThere)) yield* TestClock.adjust(duration)
  })

const pushing = Effect.fnUntraced(function*() {
  const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
  const connected = yield* SimulatedDevice.connect(device)
  const subscriptions = yield* Subscriptions
  const { subscriptionId } = yield* subscriptions.create(defaultProjectId, {
    name: "Push",
    filter: { kinds: ["PropertiesReported"] },
    webhook: { url: "https://example.com/hook" }
  })
  const detail = subscriptions.get(defaultProjectId, subscriptionId)
  return { connected, subscriptions, subscriptionId, detail }
})

const cloudWith = (receiver: Receiver) =>
  DeviceCloud.layer.pipe(
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, receiver.client)))
  )

it.effect("events are pushed in order, in batches, and not again", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected, detail, subscriptionId, subscriptions } = yield* pushing()
    for (let n = 0; n < 250; n++) yield* connected.postProperties({ n })
    yield* pass("1 second", 8)
    const requests = receiver.take()
    assert.deepStrictEqual(requests.flatMap(numbers), Array.from({ length: 250 }, (_, n) => n))
    assert.isTrue(requests.every(({ events }) => events.length <= 100))
    assert.deepInclude(requests[0], { subscription_id: subscriptionId, subscription_name: "Push", gap: false })
    assert.strictEqual(new Set(requests.map(({ id }) => id)).size, requests.length)
    assert.strictEqual((yield* detail).lag.events, 0)
    yield* subscriptions.seek(defaultProjectId, subscriptionId, "earliest")
    yield* pass("1 second", 8)
    assert.deepStrictEqual(receiver.take().flatMap(({ events }) => events), requests.flatMap(({ events }) => events))
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("large events go in smaller batches", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected } = yield* pushing()
    for (let n = 0; n < 10; n++) yield* connected.postProperties({ n, text: "ü".repeat(30_000) })
    yield* pass("1 second", 8)
    const bodies = receiver.requests.map(({ body }) => Buffer.byteLength(body))
    assert.isAtMost(Math.max(...bodies), 256 * 1024 + 200)
    assert.deepStrictEqual(receiver.take().flatMap(numbers), Array.from({ length: 10 }, (_, n) => n))
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("a client of webhooks that throws, is interrupted or returns no Effect has failed, and is asked ever later", () => {
  const receiver = new Receiver()
  const wrongs: ReadonlyArray<() => ReturnType<WebhookClient["Service"]["send"]>> = [
    () => {
      throw new Error("it throws")
    },
    () => Effect.interrupt,
    // oxlint-disable-next-line no-explicit-any -- a program without types may give anything
    () => Promise.resolve() as any,
    // oxlint-disable-next-line no-explicit-any -- a program without types may give anything
    () => Effect.succeed({ status: 500 } as any)
  ]
  let asked = 0
  const client = WebhookClient.of({
    ...receiver.client,
    send: (request) => wrongs[asked++]?.() ?? receiver.client.send(request)
  })
  return Effect.gen(function*() {
    const { connected, detail } = yield* pushing()
    yield* connected.postProperties({ n: 1 })
    const began = yield* Clock.currentTimeMillis
    for (let n = 1; n <= wrongs.length; n++) {
      yield* passUntil("1 second", Effect.map(detail, ({ progress }) => progress.failure?.attempts === n))
      assert.deepInclude((yield* detail).progress.failure, { reason: "Internal error" })
    }
    yield* passUntil("1 second", Effect.map(detail, ({ lag }) => lag.events === 0))
    // 1, 2, 4 and 8 seconds lie between them.
    assert.isAtLeast((yield* Clock.currentTimeMillis) - began, 15_000)
    assert.deepStrictEqual(receiver.take().flatMap(numbers), [1])
  }).pipe(
    Effect.scoped,
    Effect.provide(
      DeviceCloud.layer.pipe(
        Layer.provideMerge(StorageMemory.layer),
        Layer.provideMerge(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, client)))
      )
    )
  )
})

it.effect("what was not taken goes again, ever later; after an hour it is paused, and resumed without loss", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected, detail, subscriptionId, subscriptions } = yield* pushing()
    receiver.answer = { status: 503, body: "closed" }
    yield* connected.postProperties({ n: 1 })
    const began = yield* Clock.currentTimeMillis
    yield* passUntil("1 second", Effect.sync(() => receiver.requests.length === 4))
    // 1, 2 and 4 seconds lie between them.
    assert.isAtLeast((yield* Clock.currentTimeMillis) - began, 7000)
    const first = receiver.take()
    assert.strictEqual(new Set(first.map(({ id }) => id)).size, 1)
    assert.deepInclude((yield* detail).progress.failure, { pausedAt: null, reason: "Answered with 503: closed" })
    receiver.answer = new WebhookError({ reason: "unreachable", message: "example.com cannot be reached" })
    yield* connected.postProperties({ n: 2 })
    yield* passUntil("10 seconds", Effect.map(detail, ({ progress: { failure } }) => failure?.pausedAt != null))
    const { lag, progress: { failure } } = yield* detail
    assert.strictEqual(failure?.reason, "example.com cannot be reached")
    assert.isAtLeast(failure!.pausedAt! - failure!.since, 3_600_000)
    assert.strictEqual(lag.events, 2)
    receiver.take()
    receiver.answer = { status: 200, body: "" }
    yield* pass("1 minute", 10)
    assert.isEmpty(receiver.take())
    yield* connected.postProperties({ n: 3 })
    yield* subscriptions.resume(defaultProjectId, subscriptionId)
    yield* passUntil("1 second", Effect.map(detail, ({ lag }) => lag.events === 0))
    assert.deepStrictEqual(receiver.take().flatMap(numbers), [1, 2, 3])
    assert.isNull((yield* detail).progress.failure)
  }).pipe(
    Effect.scoped,
    Effect.provide(cloudWith(receiver).pipe(Layer.provide(Layer.succeed(LookInterval, 5000))))
  )
})

it.effect("what a receiver has said is shown without half a character at its end", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    receiver.answer = { status: 500, body: `${"x".repeat(199)}😀` }
    const { connected, detail } = yield* pushing()
    yield* connected.postProperties({ n: 1 })
    const isFailing = Effect.map(detail, ({ progress }) => progress.failure !== null)
    yield* passUntil("1 second", isFailing)
    assert.deepInclude((yield* detail).progress.failure, { reason: `Answered with 500: ${"x".repeat(199)}` })
  }).pipe(Effect.provide(cloudWith(receiver)))
})

it.effect("a gap is told until the receiver has taken it", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected, detail } = yield* pushing()
    receiver.answer = { status: 503, body: "closed" }
    yield* connected.postProperties({ n: 1 })
    yield* passUntil("1 second", Effect.sync(() => receiver.requests.length > 0))
    yield* TestClock.adjust("5 minutes")
    yield* (yield* FeedStore).prune({ keepMillis: 60_000, maxBytes: 1e9, isHistoryApart: false })
    yield* passUntil("1 minute", Effect.map(detail, ({ lag }) => !lag.isGap))
    receiver.take()
    yield* connected.postProperties({ n: 2 })
    yield* passUntil("10 seconds", Effect.sync(() => receiver.requests.length >= 2))
    receiver.answer = { status: 200, body: "" }
    yield* passUntil("10 seconds", Effect.map(detail, ({ lag }) => lag.events === 0))
    const requests = receiver.take()
    assert.deepStrictEqual([...new Set(requests.flatMap(numbers))], [2])
    assert.isTrue(requests.every(({ gap }) => gap))
    yield* connected.postProperties({ n: 3 })
    yield* passUntil("1 second", Effect.sync(() => receiver.requests.length > 0))
    assert.deepStrictEqual(receiver.take().map(({ gap }) => gap), [false])
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("what happens after a change goes to the new URL, by the new filter", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected, detail, subscriptionId, subscriptions } = yield* pushing()
    yield* pass("1 second", 5)
    yield* subscriptions.change(defaultProjectId, subscriptionId, {
      filter: { kinds: ["DeviceStatusChanged", "PropertiesReported"] },
      webhook: { url: "https://example.org/new" }
    })
    yield* connected.postProperties({ n: 1 })
    yield* passUntil("1 second", Effect.map(detail, ({ lag }) => lag.events === 0))
    assert.deepStrictEqual(receiver.requests.map(({ url }) => url), ["https://example.org/new"])
    assert.deepStrictEqual(receiver.take().flatMap(numbers), [1])
    yield* pass("1 second", 5)
    yield* subscriptions.change(defaultProjectId, subscriptionId, { filter: { kinds: ["DeviceStatusChanged"] } })
    yield* connected.postProperties({ n: 2 })
    yield* pass("1 second", 8)
    assert.isEmpty(receiver.take())
    yield* subscriptions.change(defaultProjectId, subscriptionId, { filter: { kinds: ["PropertiesReported"] } })
    yield* connected.postProperties({ n: 3 })
    yield* passUntil("1 second", Effect.map(detail, ({ lag }) => lag.events === 0))
    assert.deepStrictEqual(receiver.take().flatMap(numbers), [3])
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("nobody else reads what is pushed; workers go on where the push has ended", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const { connected, subscriptionId, subscriptions } = yield* pushing()
    const reader = yield* SubscriptionReader
    const worker = { projectId: defaultProjectId, subscriptionId, worker: "one" }
    const read = reader.read({ ...worker, cursor: undefined, limit: 10, wait: 30_000 })
    yield* connected.postProperties({ n: 1 })
    yield* pass("1 second", 5)
    assert.strictEqual((yield* Effect.flip(read))._tag, "SubscriptionPushes")
    assert.strictEqual((yield* Effect.flip(reader.acknowledge(worker, "1-")))._tag, "SubscriptionPushes")
    const refused = yield* Effect.flip(
      subscriptions.change(defaultProjectId, subscriptionId, { webhook: { url: "http://10.0.0.1/" } })
    )
    assert.strictEqual(refused.message, "webhook.url: Expected a public address")
    yield* subscriptions.change(defaultProjectId, subscriptionId, { webhook: null })
    yield* pass("1 second", 5)
    yield* connected.postProperties({ n: 2 })
    yield* pass("1 second", 5)
    const { entries } = yield* read
    assert.deepStrictEqual(
      entries.map(({ event }) => event._tag === "PropertiesReported" && event.properties["n"]?.value),
      [2]
    )
    assert.deepStrictEqual(receiver.take().flatMap(numbers), [1])
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("the lag of each subscription is a metric, and 0 when it is gone", () => {
  const receiver = new Receiver()
  receiver.answer = { status: 500, body: "" }
  return Effect.gen(function*() {
    const { connected, subscriptionId, subscriptions } = yield* pushing()
    const valueOf = (name: string) =>
      Effect.map(Metric.snapshot, (metrics) => {
        const found = metrics.find(({ attributes, id }) =>
          id === name && attributes?.["subscription"] === String(subscriptionId)
        )
        return found?.type === "Gauge" ? Number(found.state.value) : Number.NaN
      })
    yield* connected.postProperties({ n: 1 })
    yield* pass("1 second", 5)
    yield* connected.postProperties({ n: 2 })
    yield* pass("5 seconds", 10)
    assert.strictEqual(yield* valueOf("device_cloud_subscription_lag_events"), 2)
    assert.isAtLeast(yield* valueOf("device_cloud_subscription_lag_seconds"), 30)
    yield* subscriptions.remove(defaultProjectId, subscriptionId)
    yield* pass("5 seconds", 5)
    assert.strictEqual(yield* valueOf("device_cloud_subscription_lag_events"), 0)
  }).pipe(Effect.scoped, Effect.provide(cloudWith(receiver)))
})

it.effect("two nodes share a push; what one has had goes to the other when it ends", () => {
  const receivers = [new Receiver(), new Receiver()] as const
  return Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const node = (receiver: Receiver) =>
      Layer.build(
        Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))).pipe(
          Layer.provide(Layer.succeedContext(stores)),
          Layer.provide(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, receiver.client)))
        )
      )
    const second = yield* Scope.make()
    const services = yield* node(receivers[0])
    yield* Scope.provide(node(receivers[1]), second)
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const devices = yield* Effect.forEach(
        Array.from({ length: 12 }),
        () => Effect.flatMap(Fixtures.createDevice(product), SimulatedDevice.connect)
      )
      const { subscriptionId } = yield* (yield* Subscriptions).create(defaultProjectId, {
        name: "Push",
        filter: { kinds: ["PropertiesReported"] },
        webhook: { url: "https://example.com/hook" }
      })
      yield* pass("500 millis", 40)
      const { progress } = yield* (yield* Subscriptions).get(defaultProjectId, subscriptionId)
      assert.strictEqual(progress.workers.length, 2)
      const report = (n: number) =>
        Effect.andThen(
          Effect.forEach(devices, (device) => device.postProperties({ n }), { discard: true }),
          pass("500 millis", 10)
        )
      yield* report(1)
      yield* report(2)
      const before = receivers.map((receiver) => receiver.take().flatMap(({ events }) => events))
      assert.isTrue(before.every(({ length }) => length > 0))
      assert.strictEqual(new Set(before.flat().map(({ id }) => id)).size, 24)
      assert.strictEqual(before.flat().length, 24)
      yield* Scope.close(second, Exit.void)
      yield* report(3)
      yield* pass("500 millis", 30)
      assert.deepStrictEqual(receivers[0].take().flatMap(numbers), Array.from({ length: 12 }, () => 3))
      assert.isEmpty(receivers[1].take())
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Layer.succeedContext(services), PlatformNode.layer)))
  }).pipe(Effect.scoped)
})

it.effect("an attempt that a clock which was ahead has put off is made when servers have started with the right one", () => {
  const receiver = new Receiver()
  return Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const node = Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))).pipe(
      Layer.provide(Layer.succeedContext(stores)),
      Layer.provide(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, receiver.client)))
    )
    const right = yield* Clock.currentTimeMillis
    yield* TestClock.adjust("1 hour")
    receiver.answer = { status: 503, body: "" }
    yield* Effect.gen(function*() {
      const { connected } = yield* pushing()
      yield* connected.postProperties({ n: 1 })
      yield* passUntil("1 second", Effect.sync(() => receiver.requests.length > 1))
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(node.pipe(Layer.provideMerge(Layer.succeedContext(stores))), PlatformNode.layer))
    )
    receiver.take()
    receiver.answer = { status: 204, body: "" }
    yield* TestClock.setTime(right)
    yield* Layer.build(node)
    yield* pass("1 second", 30)
    assert.deepStrictEqual(receiver.take().map(numbers), [[1]])
  }).pipe(Effect.scoped)
})

it.effect("a clock of the store that jumps ahead pauses no push, and puts off no attempt", () => {
  const receiver = new Receiver()
  let ahead = 0
  const stores = Layer.effect(
    SubscriptionStore,
    Effect.map(SubscriptionStore, (store) => ({
      ...store,
      modify: (modifications) =>
        store.modify(
          modifications.map(({ step, ...own }) => ({ ...own, step: (stored, now) => step(stored, now + ahead) }))
        )
    }))
  ).pipe(Layer.provideMerge(StorageMemory.layer))
  return Effect.gen(function*() {
    const { connected, detail } = yield* pushing()
    receiver.answer = { status: 503, body: "" }
    yield* connected.postProperties({ n: 1 })
    yield* passUntil("1 second", Effect.sync(() => receiver.requests.length > 0))
    ahead = 3_600_000
    yield* passUntil("1 second", Effect.sync(() => receiver.requests.length > 1))
    yield* pass("1 second")
    ahead = 0
    const { progress } = yield* detail
    assert.isNull(progress.failure!.pausedAt)
    receiver.take()
    receiver.answer = { status: 204, body: "" }
    yield* pass("1 second", 30)
    assert.deepStrictEqual(receiver.take().map(numbers), [[1]])
  }).pipe(
    Effect.scoped,
    Effect.provide(
      DeviceCloud.layer.pipe(
        Layer.provideMerge(stores),
        Layer.provideMerge(Layer.mergeAll(PlatformNode.layer, Layer.succeed(WebhookClient, receiver.client)))
      )
    )
  )
})
