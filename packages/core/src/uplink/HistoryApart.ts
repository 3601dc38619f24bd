/**
 * Keeps the history of devices in a store that stands apart: another database,
 * files, a service.
 *
 * A storage adapter writes history in `UplinkStore.commit`, in its own
 * transaction. This layer changes the `UplinkStore` below it: it leaves the history
 * of a commit out, and the history goes to the given `HistoryStore`.
 *
 * ```ts
 * const Storage = HistoryApart.layer.pipe(
 *   Layer.provideMerge(MyHistoryStore.layer),
 *   Layer.provideMerge(StoragePg.layer({ url }))
 * )
 * ```
 */
import { Effect, Layer, Option } from "effect"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { historyOf } from "../history/HistoryOf.ts"
import { type HistoryAddition, HistoryStandsApart, HistoryStore } from "../history/HistoryStore.ts"
import { untilStored } from "../kernel/StoreError.ts"
import { type DeviceCommit, type UplinkBatch, UplinkStore } from "./UplinkStore.ts"

/**
 * History is appended after the commit and before any reply to the devices of
 * the batch, so a device that gets its reply has its history stored. A crash in
 * between leaves a shadow whose history is missing; no device got a reply, so
 * each says it again. When a device is deleted, its history is removed first: a
 * deletion fails if the history cannot be removed.
 *
 * While the history store is out of reach, the batch waits and tries again, as it
 * does for the other stores. The commit runs once: a failure of `append` that
 * cannot pass is a defect, and the devices of the batch get no reply.
 */
export const layer: Layer.Layer<UplinkStore, never, UplinkStore | HistoryStore> = Layer.effect(
  UplinkStore,
  Effect.gen(function*() {
    return make(yield* UplinkStore, yield* HistoryStore)
  })
).pipe(Layer.merge(Layer.succeed(HistoryStandsApart, true)))

/** The result of a device's update, and what has happened in it. */
interface Committed<A> {
  readonly result: A
  readonly happened: ReadonlyArray<DomainEvent>
}

/** What has happened comes back as part of the result: it belongs to the update that the store kept. */
const withHappened = <A>({ deviceId, update }: DeviceCommit<A>): DeviceCommit<Committed<A>> => ({
  deviceId,
  update: (before) => {
    const [result, shadow, facts] = update(before)
    return [{ result, happened: facts.happened }, shadow, facts]
  }
})

const make = (store: UplinkStore["Service"], history: HistoryStore["Service"]): UplinkStore["Service"] => ({
  commit: Effect.fnUntraced(function*<A>({ devices, ...batch }: UplinkBatch<A>) {
    const committed = yield* store.commit({ ...batch, devices: devices.map(withHappened), isHistoryApart: true })
    const additions: Array<HistoryAddition> = []
    for (let i = 0; i < devices.length; i++) {
      const stored = Option.getOrUndefined(committed[i]!)
      if (stored === undefined) continue
      const { events, samples } = historyOf(stored.happened)
      if (samples.length + events.length > 0) additions.push({ deviceId: devices[i]!.deviceId, samples, events })
    }
    if (additions.length > 0) yield* Effect.orDie(untilStored(history.append(additions)))
    return committed.map(Option.map(({ result }) => result))
  })
})
