/**
 * Entries on their way into segments: gathered by device, property or event, and day.
 */
import { encode } from "./SegmentCodec.ts"

export const millisOfDay = 86_400_000

/** Days since 1970. */
export const dayOf = (time: number): number => Math.floor(time / millisOfDay)

/** The sign that the number of a name has in `series`. */
export const signs = { property: 1, event: -1 } as const

export type EntryKind = keyof typeof signs

/** Entries of one property or event of a device on one day, in the order in which they were stored. */
export interface Gathered {
  readonly device: number
  readonly kind: EntryKind
  readonly name: string
  readonly day: number
  /** Milliseconds of the day. */
  readonly times: Array<number>
  /** The values as JSON. */
  readonly texts: Array<string>
}

/** By device, kind, name and day: no key is made for each entry. */
type Series = Readonly<Record<EntryKind, Map<string, Map<number, Gathered>>>>

const known = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const value = map.get(key)
  if (value !== undefined) return value
  const made = make()
  map.set(key, made)
  return made
}

export class HistoryEntries {
  readonly #devices = new Map<number, Series>()
  readonly all: Array<Gathered> = []
  /** How many entries there are. */
  count = 0
  /** Characters of their values. */
  length = 0

  /** `time`: Unix milliseconds. `text`: the value as JSON. */
  add(device: number, kind: EntryKind, name: string, time: number, text: string): void {
    const day = dayOf(time)
    const series = known(this.#devices, device, () => ({ property: new Map(), event: new Map() }))
    const days = known(series[kind], name, () => new Map<number, Gathered>())
    const { texts, times } = known(days, day, () => {
      const gathered: Gathered = { device, kind, name, day, times: [], texts: [] }
      this.all.push(gathered)
      return gathered
    })
    times.push(time - day * millisOfDay)
    texts.push(text)
    this.count++
    this.length += text.length
  }
}

/** Entries and characters of a segment, at most; a value alone may have more. */
const maxEntries = 4096
const maxLength = 262_144

/** The bytes of a segment, and what the table says about them. */
export interface Packed {
  readonly first: number
  readonly last: number
  readonly count: number
  readonly data: Uint8Array
}

/** Packs entries of one property or event and day, which need not be in the order of time. */
export const pack = (times: ReadonlyArray<number>, texts: ReadonlyArray<string>): ReadonlyArray<Packed> => {
  // The sort is stable: entries of the same time stay in the order in which they were stored.
  const order = Array.from(times, (_, i) => i).sort((a, b) => times[a]! - times[b]!)
  const packed: Array<Packed> = []
  for (let start = 0; start < order.length;) {
    let end = start
    for (let length = 0; end < order.length && end - start < maxEntries; end++) {
      length += texts[order[end]!]!.length
      if (length > maxLength && end > start) break
    }
    const part = order.slice(start, end)
    packed.push({
      first: times[part[0]!]!,
      last: times[part.at(-1)!]!,
      count: part.length,
      data: encode(part.map((i) => times[i]!), part.map((i) => texts[i]!))
    })
    start = end
  }
  return packed
}
