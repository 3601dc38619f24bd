/**
 * Keeps the history of devices in a store that stands apart and is fed from the
 * feed of events, with a place of its own: for an engine that may be slow, or away.
 *
 * ```ts
 * const Storage = HistoryFromFeed.layer.pipe(
 *   Layer.provideMerge(MyHistoryStore.layer),
 *   Layer.provideMerge(StoragePg.layer({ url }))
 * )
 * ```
 */
import { Effect, Layer } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { EventSink, EventSinkError } from "../feed/EventSink.ts"
import type { FeedReaderStore } from "../feed/FeedReaderStore.ts"
import type { FeedEntry, FeedStore } from "../feed/FeedStore.ts"
import { historyOf } from "../history/HistoryOf.ts"
import { HistoryFollowsFeed, HistoryStandsApart, HistoryStore } from "../history/HistoryStore.ts"
import { UplinkStore } from "./UplinkStore.ts"

/**
 * Commits leave the history out. What they report is appended within about a
 * second, by one node at a time; no device waits for it. While the history store is
 * out of reach, the feed waits for it, as long as it keeps events. After a crash
 * between `append` and the place the same events are appended again, of which the
 * store leaves out what it has. When a device is deleted, its history is removed
 * once the feed has come to the deletion.
 */
export const layer: Layer.Layer<UplinkStore, never, UplinkStore | HistoryStore | FeedStore | FeedReaderStore> = Layer
  .effect(
    UplinkStore,
    Effect.map(
      UplinkStore,
      (store) => UplinkStore.of({ commit: (batch) => store.commit({ ...batch, isHistoryApart: true }) })
    )
  ).pipe(
    Layer.merge(Layer.succeed(HistoryStandsApart, true)),
    Layer.merge(Layer.succeed(HistoryFollowsFeed, true)),
    Layer.merge(Layer.unwrap(Effect.map(HistoryStore, (store) => EventSink.layer(sinkOf(store)))))
  )

const sinkOf = (store: HistoryStore["Service"]): EventSink => ({
  name: "history",
  select: { kinds: ["PropertiesReported", "EventReported", "DeviceLifecycle"] },
  deliver: (entries) => {
    const { deleted, happened } = byDevice(entries)
    const additions = [...happened].map(([deviceId, events]) => ({ deviceId, ...historyOf(events) }))
    return Effect.andThen(store.append(additions), store.remove(deleted)).pipe(
      Effect.mapError((cause) => new EventSinkError({ message: `The history is not stored: ${cause.message}`, cause }))
    )
  }
})

/** What the devices have reported, except those that are deleted, and which these are. */
const byDevice = (entries: ReadonlyArray<FeedEntry>) => {
  const happened = new Map<DeviceId, Array<DomainEvent>>()
  const deleted: Array<DeviceId> = []
  for (const { event } of entries) {
    if (event._tag === "DeviceLifecycle") {
      if (event.action !== "delete") continue
      deleted.push(event.device.deviceId)
      happened.delete(event.device.deviceId)
    } else if (event.device !== null) {
      const { deviceId } = event.device
      const known = happened.get(deviceId)
      if (known === undefined) happened.set(deviceId, [event])
      else known.push(event)
    }
  }
  return { happened, deleted }
}
