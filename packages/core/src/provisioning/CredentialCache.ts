/**
 * The credentials of devices that have shown theirs lately: a device that
 * speaks often is not looked up each time.
 */
import { Clock, Effect, Option, type Scope, Stream } from "effect"
import { type DeviceCredentials, type DeviceId, deviceKey, type DeviceName } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { ProductKey } from "../product/Product.ts"

/** Devices that are remembered; of more, those that were looked up longest ago are forgotten. */
const capacity = 50_000

/** How long credentials may count whose change another node could not tell, milliseconds. */
const timeToLive = 60_000

interface Known {
  readonly credentials: DeviceCredentials
  /** Unix milliseconds. */
  readonly until: number
}

/**
 * `DeviceStore.credentials`, remembered for devices that are enabled. A device
 * that is disabled or deleted is forgotten at once: whoever does so cuts it off.
 */
export const make: Effect.Effect<
  DeviceStore["Service"]["credentials"],
  never,
  DeviceStore | DeviceSessions | NodeBus | Scope.Scope
> = Effect.gen(function*() {
  const store = yield* DeviceStore
  const link = yield* DeviceSessions
  const bus = yield* NodeBus
  const clock = yield* Clock.Clock
  const known = new Map<string, Known>()
  const names = new Map<DeviceId, string>()
  /** What was looked up before something was forgotten may be what is forgotten. */
  let forgotten = 0

  const remove = (deviceId: DeviceId) => {
    const name = names.get(deviceId)
    if (name === undefined) return
    names.delete(deviceId)
    known.delete(name)
  }

  const forget = (deviceId: DeviceId) => {
    forgotten++
    remove(deviceId)
  }

  const remember = (name: string, credentials: DeviceCredentials) => {
    known.delete(name)
    known.set(name, { credentials, until: clock.currentTimeMillisUnsafe() + timeToLive })
    names.set(credentials.identity.deviceId, name)
    if (known.size > capacity) remove(known.values().next().value!.credentials.identity.deviceId)
  }

  const lookUp = Effect.fnUntraced(function*(productKey: ProductKey, deviceName: DeviceName) {
    const forgottenBefore = forgotten
    const found = yield* store.credentials(productKey, deviceName)
    if (Option.isSome(found) && found.value.enabled && forgotten === forgottenBefore) {
      remember(deviceKey({ productKey, deviceName }), found.value)
    }
    return found
  })

  yield* link.listen({ cutOff: forget })
  yield* bus.heard.pipe(
    Stream.runForEach((notice) =>
      Effect.sync(() => {
        if (notice._tag !== "Missed") return
        forgotten++
        known.clear()
        names.clear()
      })
    ),
    Effect.forkScoped
  )

  return (productKey, deviceName) => {
    const remembered = known.get(deviceKey({ productKey, deviceName }))
    return remembered !== undefined && clock.currentTimeMillisUnsafe() < remembered.until
      ? Effect.succeedSome(remembered.credentials)
      : lookUp(productKey, deviceName)
  }
})
