import { defaultProjectId, DeviceCloud, PresenceStore, Shadows, ShadowStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"

/** A cloud in memory with a store that waits when a test says so. */
const cloudOn = <Store extends PresenceStore | ShadowStore>(slowly: Layer.Layer<Store, never, Store>) =>
  DeviceCloud.layer.pipe(
    Layer.provideMerge(slowly),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )

/** What the device was told last is desired of it. */
const lastControl = (received: SimulatedDevice.SimulatedDevice["received"]) =>
  Effect.map(Queue.clear(received), (all) => all.findLast(({ method }) => method === "thing.shadow")?.params)

it.effect("what a device is told last is what is desired of it, also if an earlier change is noted later", () =>
  Effect.gen(function*() {
    const isHeld = yield* Deferred.make<void>()
    const goesOn = yield* Deferred.make<void>()
    let isFirst = true
    const slowly = Layer.effect(
      PresenceStore,
      Effect.map(PresenceStore, (store) => ({
        ...store,
        noteDesired: (deviceId) => {
          const waits = isFirst
          isFirst = false
          const held = Effect.andThen(Deferred.succeed(isHeld, undefined), Deferred.await(goesOn))
          return Effect.andThen(waits ? held : Effect.void, store.noteDesired(deviceId))
        }
      }))
    )
    yield* Effect.gen(function*() {
      const shadows = yield* Shadows
      const device = yield* Fixtures.createDevice()
      const { received } = yield* SimulatedDevice.connect(device)
      const first = yield* Effect.forkScoped(shadows.desire(defaultProjectId, device.deviceId, { level: 1 }))
      yield* Deferred.await(isHeld)
      yield* shadows.desire(defaultProjectId, device.deviceId, { level: 2 })
      yield* Deferred.succeed(goesOn, undefined)
      yield* Fiber.join(first)
      yield* TestClock.adjust("1 second")
      assert.deepNestedInclude(yield* lastControl(received), { "state.desired": { level: 2 } })
    }).pipe(Effect.provide(cloudOn(slowly)))
  }))

it.effect("what a device is told last is what is desired of it, also if that changes while it connects", () =>
  Effect.gen(function*() {
    const isHeld = yield* Deferred.make<void>()
    const goesOn = yield* Deferred.make<void>()
    let holds = false
    const slowly = Layer.effect(
      ShadowStore,
      Effect.map(ShadowStore, (store) => ({
        ...store,
        get: (deviceId) =>
          Effect.tap(store.get(deviceId), () => {
            if (!holds) return Effect.void
            holds = false
            return Effect.andThen(Deferred.succeed(isHeld, undefined), Deferred.await(goesOn))
          })
      }))
    )
    yield* Effect.gen(function*() {
      const shadows = yield* Shadows
      const device = yield* Fixtures.createDevice()
      yield* shadows.desire(defaultProjectId, device.deviceId, { level: 1 })
      holds = true
      const { received } = yield* SimulatedDevice.connect(device)
      yield* Deferred.await(isHeld)
      yield* shadows.desire(defaultProjectId, device.deviceId, { level: 2 })
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(goesOn, undefined)
      yield* TestClock.adjust("1 second")
      assert.deepNestedInclude(yield* lastControl(received), { "state.desired": { level: 2 } })
    }).pipe(Effect.provide(cloudOn(slowly)))
  }))
