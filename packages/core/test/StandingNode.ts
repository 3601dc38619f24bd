/**
 * Two nodes on one storage, one of which may stand still.
 */
import { DeviceCloud } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Clock, type Duration, Effect, Latch, Layer } from "effect"

const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))

/** Timers of the node `here` do not go off while `runs` is closed. */
export const nodes = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const runs = yield* Latch.make(true)
  const still: Clock.Clock = Object.create(clock, {
    sleep: { value: (duration: Duration.Duration) => Effect.andThen(clock.sleep(duration), runs.await) }
  })
  return { here: yield* Effect.provideService(node, Clock.Clock, still), elsewhere: yield* node, runs }
})
