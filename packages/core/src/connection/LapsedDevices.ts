/**
 * Sets devices offline whose time online has lapsed: no sighting for five
 * minutes, or a node that stops or is silent (docs/decisions/0008-presence.md).
 */
import { Array, Clock, Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type Lapse, type LostDevice, PresenceStore } from "./PresenceStore.ts"
import { productsOf, reactionsTo, type StatusChange, statusEvent } from "./StatusChange.ts"

export interface LapsedDevices {
  /** Sets all devices offline to which the lapse applies. */
  readonly setOffline: (lapse: Lapse) => Effect.Effect<void, StoreError>
  /** Sets those of the devices offline that are online without a connection. */
  readonly setUnconnectedOffline: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
}

/** Devices that go offline in one transaction. */
const limit = 1000

export const make: Effect.Effect<LapsedDevices, never, PresenceStore | Feed | Reactions> = Effect.gen(function*() {
  const store = yield* PresenceStore
  const feed = yield* Feed
  const reactions = yield* Reactions

  /**
   * Sets at most `limit` devices offline. Returns the last of them when there may be
   * more: some may have come back meanwhile. If all have, another node sets them offline.
   */
  const setSomeOffline = Effect.fnUntraced(function*(
    lapse: Lapse,
    after?: DeviceId
  ): Effect.fn.Return<DeviceId | undefined, StoreError> {
    const devices = yield* store.lapsed(lapse, limit, after)
    if (devices.length === 0) return undefined
    yield* reactions.load(productsOf(devices))
    const at = yield* Clock.currentTimeMillis
    const changeOf = ({ device }: LostDevice): StatusChange => ({ device, at, status: "offline" })
    const markOffline = store.markOffline({
      deviceIds: devices.map(({ deviceId }) => deviceId),
      lapse,
      at,
      ...devices.some((device) => reactions.watches("StatusChanged", device))
        ? {
          reactTo: (lost: ReadonlyArray<LostDevice>) => lost.flatMap((each) => reactionsTo(reactions, changeOf(each)))
        }
        : {}
    })
    const lost = yield* feed.commit(
      markOffline,
      (lost) => lost.map((each) => statusEvent(changeOf(each), each.version))
    )
    if (lost.length > 0) reactions.wake()
    return devices.length < limit || lost.length === 0 ? undefined : devices.at(-1)!.deviceId
  })

  const setOffline = Effect.fnUntraced(function*(lapse: Lapse) {
    let last = yield* setSomeOffline(lapse)
    while (last !== undefined) last = yield* setSomeOffline(lapse, last)
  })

  const setUnconnectedOffline = (deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.forEach(
      Array.chunksOf(deviceIds, limit),
      (some) => setSomeOffline({ _tag: "NotConnected", deviceIds: some }),
      { discard: true }
    )

  return { setOffline, setUnconnectedOffline }
})
