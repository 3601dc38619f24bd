/**
 * Caches the credentials of devices that have authenticated lately, so that a
 * device that connects or posts often is not looked up each time.
 */
import { Effect, Option, Schema, type Scope } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { type DeviceIdentity, DeviceName, type StoredCredentials } from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import { ProductKey } from "../product/Product.ts"

/** Devices in the cache. */
const capacity = 50_000

/** How long cached credentials may count after a change whose notice was lost, milliseconds. */
const timeToLive = 60_000

const CredentialsChanged = NodeBus.channel(
  "provisioning/credentials",
  Schema.Struct({ productKey: ProductKey, deviceName: DeviceName })
)

/**
 * Makes a cached `DeviceStore.credentials`, until the scope closes. It keeps
 * enabled devices only. All nodes forget a device at once when it is disabled,
 * deleted, or has a new secret.
 */
export const make: Effect.Effect<
  DeviceStore["Service"]["credentials"],
  never,
  DeviceStore | DeviceLifecycle | NodeBus | Scope.Scope
> = Effect.gen(function*() {
  const store = yield* DeviceStore
  const lifecycle = yield* DeviceLifecycle
  const channel = yield* CredentialsChanged
  const keyOf = ({ deviceName, productKey }: Pick<DeviceIdentity, "productKey" | "deviceName">) =>
    `${productKey}\0${deviceName}`

  const lookUp = Effect.fnUntraced(function*(key: string) {
    const [productKey = "", deviceName = ""] = key.split("\0")
    const found = yield* store.credentials(ProductKey.make(productKey), DeviceName.make(deviceName))
    return Option.map(found, (credentials) => [key, credentials] as const)
  })

  const known = yield* NodeCache.make({
    capacity,
    timeToLive,
    load: (keys: ReadonlyArray<string>) =>
      Effect.map(Effect.forEach(keys, lookUp), (found) => new Map(found.flatMap(Option.toArray))),
    keeps: ({ enabled }: StoredCredentials) => enabled
  })

  const forget = (devices: ReadonlyArray<DeviceIdentity>) =>
    Effect.suspend(() => {
      for (const device of devices) known.forget(keyOf(device))
      return channel.publish(devices.map(({ deviceName, productKey }) => ({ productKey, deviceName })))
    }).pipe(Effect.catch((error) => Effect.logWarning("Other nodes could not be told of credentials", error)))

  // Before connections end: a device that reconnects is looked up.
  yield* lifecycle.register({
    stage: "access",
    disabled: forget,
    rotated: forget,
    deleting: () => Effect.succeed(forget)
  })
  yield* channel.subscribe({
    heard: (device) => Effect.sync(() => known.forget(keyOf(device))),
    missed: Effect.sync(known.forgetAll)
  })

  return (productKey, deviceName) => {
    const key = keyOf({ productKey, deviceName })
    const remembered = known.fresh(key)
    return remembered === undefined
      ? Effect.map(known.get([key]), (found) => Option.fromUndefinedOr(found.get(key)))
      : Effect.succeedSome(remembered)
  }
})
