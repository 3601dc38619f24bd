/**
 * Sets devices offline whose time online has lapsed: no sighting for five
 * minutes, or a node that stops or is silent (docs/decisions/0008-presence.md).
 */
import { Array, Clock, Effect, Stream } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import * as KeyedPages from "../kernel/KeyedPages.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type Lapse, type LostDevice, PresenceStore } from "./PresenceStore.ts"
import { productsOf, reactionsTo, type StatusChange, statusEvent } from "./StatusChange.ts"

export interface LapsedDevices {
  /** Sets all devices offline to which the lapse applies. `reason`: why, in a sentence for operators. */
  readonly setOffline: (lapse: Lapse, reason: string) => Effect.Effect<void, StoreError>
  /** Sets those of the devices offline that are online without a connection, and returns them. */
  readonly setUnconnectedOffline: (
    deviceIds: ReadonlyArray<DeviceId>,
    reason: string
  ) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
}

/** Devices that go offline in one transaction. */
const limit = 1000
/** Transactions for the devices of one node at a time. */
const concurrency = 4

export const make: Effect.Effect<LapsedDevices, never, PresenceStore | Feed | Reactions> = Effect.gen(function*() {
  const store = yield* PresenceStore
  const feed = yield* Feed
  const reactions = yield* Reactions

  /** Sets those of the devices offline that have not come back meanwhile, and returns them. */
  const markOffline = Effect.fnUntraced(function*(
    lapse: Lapse,
    reason: string,
    devices: ReadonlyArray<DeviceIdentity>
  ) {
    yield* reactions.load(productsOf(devices))
    const at = yield* Clock.currentTimeMillis
    const changeOf = ({ device }: LostDevice): StatusChange => ({ device, at, status: "offline", reason })
    const lost = yield* feed.commit(
      store.markOffline({
        deviceIds: devices.map(({ deviceId }) => deviceId),
        lapse,
        at,
        ...devices.some((device) => reactions.watches("StatusChanged", device))
          ? {
            reactTo: (lost: ReadonlyArray<LostDevice>) => lost.flatMap((each) => reactionsTo(reactions, changeOf(each)))
          }
          : {}
      }),
      (lost) => lost.map((each) => statusEvent(changeOf(each), each.version))
    )
    if (lost.length > 0) reactions.wake()
    return lost.map(({ device }) => device.deviceId)
  })

  /** Ends when there are no more devices, or when another node sets them offline. */
  const setNodeOffline = (lapse: Lapse, reason: string) =>
    KeyedPages.stream(
      limit,
      ({ deviceId }: DeviceIdentity) => deviceId,
      ({ after, limit }) => store.lapsed(lapse, limit, after)
    ).pipe(
      Stream.chunks,
      Stream.mapEffect((devices) => markOffline(lapse, reason, devices), { concurrency }),
      Stream.takeWhile((lost) => lost.length > 0),
      Stream.runDrain
    )

  /** Returns the devices that went offline. */
  const setOthersOffline = Effect.fnUntraced(function*(lapse: Lapse, reason: string) {
    const all: Array<DeviceId> = []
    let isDone = false
    while (!isDone) {
      const devices = yield* store.lapsed(lapse, limit)
      const lost = devices.length === 0 ? [] : yield* markOffline(lapse, reason, devices)
      all.push(...lost)
      isDone = lost.length === 0 || devices.length < limit
    }
    return all
  })

  const setOffline = (lapse: Lapse, reason: string) =>
    "nodeId" in lapse ? setNodeOffline(lapse, reason) : Effect.asVoid(setOthersOffline(lapse, reason))

  const setUnconnectedOffline = (deviceIds: ReadonlyArray<DeviceId>, reason: string) =>
    Effect.map(
      Effect.forEach(
        Array.chunksOf(deviceIds, limit),
        (some) => setOthersOffline({ _tag: "NotConnected", deviceIds: some }, reason)
      ),
      (lost) => lost.flat()
    )

  return { setOffline, setUnconnectedOffline }
})
