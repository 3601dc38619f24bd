/**
 * Randoms that devices have used, in memory.
 */
import { type DeviceId, maxRandoms, ReplayStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"

/** Stands alone: it reads no other data. */
export const layer: Layer.Layer<ReplayStore> = Layer.sync(ReplayStore, () => make())

const make = () => {
  /** Until when each random of a device is used, Unix milliseconds. */
  const used = new Map<DeviceId, Map<string, number>>()

  return ReplayStore.of({
    use: ({ at, deviceId, random, until }) =>
      Effect.sync(() => {
        const randoms = used.get(deviceId) ?? new Map<string, number>()
        if ((randoms.get(random) ?? 0) >= at) return "used"
        if (randoms.size >= maxRandoms) {
          for (const [known, end] of randoms) if (end < at) randoms.delete(known)
          if (randoms.size >= maxRandoms) return "full"
        }
        randoms.set(random, until)
        used.set(deviceId, randoms)
        return "fresh"
      }),
    prune: ({ endedBefore, limit }) =>
      Effect.sync(() => {
        let count = 0
        for (const [deviceId, randoms] of used) {
          for (const [random, until] of randoms) {
            if (count === limit) return count
            if (until >= endedBefore) continue
            randoms.delete(random)
            count++
          }
          if (randoms.size === 0) used.delete(deviceId)
        }
        return count
      })
  })
}
