/**
 * Readers of the feed, in memory.
 */
import { FeedReaderStore, feedStart, type HeldReader } from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"

/** Stands alone: it reads no other data. */
export const layer: Layer.Layer<FeedReaderStore> = Layer.sync(FeedReaderStore, () => make())

interface StoredReader extends HeldReader {
  /** Unix milliseconds. */
  readonly leasedUntil: number
}

const make = () => {
  const readers = new Map<string, StoredReader>()

  return FeedReaderStore.of({
    claim: ({ leaseMillis, name }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const known = readers.get(name)
        if (known !== undefined && known.leasedUntil > now && known.leasedUntil <= now + leaseMillis) {
          return Option.none()
        }
        const held = { place: known?.place ?? feedStart, epoch: (known?.epoch ?? 0) + 1 }
        readers.set(name, { ...held, leasedUntil: now + leaseMillis })
        return Option.some(held)
      }),
    advance: ({ epoch, leaseMillis, name, place }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const known = readers.get(name)
        if (known?.epoch !== epoch) return false
        readers.set(name, {
          epoch,
          place: place > known.place ? place : known.place,
          leasedUntil: now + leaseMillis
        })
        return true
      }),
    release: ({ epoch, name }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const known = readers.get(name)
        if (known?.epoch === epoch) readers.set(name, { ...known, leasedUntil: now })
      })
  })
}
