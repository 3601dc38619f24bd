/**
 * Two nodes of a cloud count together what both limit.
 */
import {
  Broadcasts,
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  makeWebhookPace,
  ProjectId,
  UplinkRateLimits,
  UplinkRates
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
const cloud = Layer.merge(StorageMemory.layer, PlatformNode.layer)

it.effect("a device that floods both nodes has the rate of one", () =>
  Effect.gen(function*() {
    const nodes = [Context.get(yield* node, UplinkRates), Context.get(yield* node, UplinkRates)]
    const { device: { messages } } = yield* UplinkRateLimits
    const device = { deviceId: DeviceId.make("device"), projectId: defaultProjectId }
    let admitted = 0
    const seconds = 30
    for (let tick = 0; tick < seconds * 10; tick++) {
      for (const { admits } of nodes) {
        for (let i = 0; i < messages; i++) {
          if (!admits(device, 1)) break
          admitted++
        }
      }
      yield* TestClock.adjust("100 millis")
    }
    // Each node lets a burst through, twice the rate, and what comes before it is told.
    assert.isAtMost(admitted, messages * (seconds + 6))
    assert.isAtLeast(admitted, messages * seconds)
  }).pipe(Effect.provide(cloud), Effect.scoped))

it.effect("what a device has sent much of to one node it lacks on another, and a quiet device lacks nothing", () =>
  Effect.gen(function*() {
    const [one, two] = [Context.get(yield* node, UplinkRates), Context.get(yield* node, UplinkRates)]
    const senderOf = (id: string) => ({ deviceId: DeviceId.make(id), projectId: defaultProjectId })
    const [busy, quiet] = [senderOf("busy"), senderOf("quiet")]
    const admitted = (device: typeof busy) => {
      let count = 0
      while (two.admits(device, 1)) count++
      return count
    }
    for (let i = 0; i < 2000; i++) assert.isTrue(one.admits(busy, 1))
    for (let i = 0; i < 20; i++) assert.isTrue(one.admits(quiet, 1))
    yield* TestClock.adjust("1 second")
    assert.strictEqual(admitted(busy), 1)
    assert.strictEqual(admitted(quiet), 2001)
  }).pipe(Effect.provide(cloud), Effect.scoped))

it.effect("a product that has had a broadcast on one node waits for its second on the other", () =>
  Effect.gen(function*() {
    const [one, two] = [yield* node, yield* node]
    const { productKey } = yield* Fixtures.createProduct().pipe(Effect.provide(one))
    const send = (on: typeof one) =>
      Effect.flatMap(
        Broadcasts,
        (broadcasts) =>
          broadcasts.send(defaultProjectId, productKey, { topic: "user/get", payload: "text", encoding: "utf8" })
      ).pipe(
        Effect.provide(on)
      )
    yield* TestClock.adjust("1 second")
    yield* send(one)
    yield* TestClock.adjust("1 milli")
    assert.strictEqual((yield* Effect.flip(send(two)))._tag, "TooManyBroadcasts")
    yield* TestClock.adjust("1 second")
    yield* send(two)
  }).pipe(Effect.provide(cloud), Effect.scoped))

it("webhooks of two nodes to one host keep the pace of one", () => {
  const limits = { rate: 10, burst: 50, atOnce: 1000 }
  const paces = [makeWebhookPace(limits), makeWebhookPace(limits)] as const
  const target = { projectId: ProjectId.make("project"), host: "victim.example" }
  const seconds = 60
  let sent = 0
  for (let now = 0; now < seconds * 1000; now += 10) {
    for (const pace of paces) {
      if (pace.take(target, now, true) !== null) continue
      pace.done(target)
      sent++
    }
    if (now % 1000 !== 0) continue
    const [one, two] = paces
    const counted = [one.counted(), two.counted()] as const
    for (const [key, amount] of counted[0]) two.charge(key, amount, now)
    for (const [key, amount] of counted[1]) one.charge(key, amount, now)
  }
  assert.isAtMost(sent, limits.rate * seconds + 2 * limits.burst + 2 * limits.rate)
  assert.isAtLeast(sent, limits.rate * seconds)
})
