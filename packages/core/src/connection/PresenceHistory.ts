/**
 * When a device was online, through what, and why that ended, as the feed has it
 * (docs/decisions/0118-presence-history.md).
 */
import { Context, Effect, Layer } from "effect"
import type { DeviceId, DeviceNotFound, DeviceStatus } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { type FeedPlace, FeedStore, type PresenceEntry } from "../feed/FeedStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"

/** The presence of a device now, and a page of its history. */
export interface PresencePage {
  readonly status: DeviceStatus
  /** Since when, Unix milliseconds; null: the device was never online. */
  readonly since: number | null
  /** The latest first. */
  readonly entries: ReadonlyArray<PresenceEntry>
}

export class PresenceHistory extends Context.Service<PresenceHistory, {
  /**
   * Returns the status of the device and at most `limit` changes of its presence, the
   * latest first, as long as the feed keeps events (`FeedLimits`). `before`: the id of
   * an entry; only earlier ones.
   */
  readonly read: (
    projectId: ProjectId,
    deviceId: DeviceId,
    page: { readonly before?: FeedPlace | undefined; readonly limit: number }
  ) => Effect.Effect<PresencePage, DeviceNotFound | StoreError>
}>()("@device-cloud/core/connection/PresenceHistory") {
  static readonly layer: Layer.Layer<PresenceHistory, never, Devices | FeedStore> = Layer.effect(
    PresenceHistory,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function*() {
  const devices = yield* Devices
  const feed = yield* FeedStore
  return PresenceHistory.of({
    read: Effect.fn("PresenceHistory.read")(function*(projectId, deviceId, page) {
      const { device } = yield* devices.get(projectId, { deviceId })
      const entries = yield* feed.presenceOf(deviceId, page)
      return { status: device.status, since: device.statusChangedAt, entries }
    })
  })
})
