/**
 * A bounded cache in a node of something that other nodes may change.
 */
import { Clock, Effect } from "effect"

export interface Options<in out K, in out V, out E> {
  /** Values that are kept; the ones that were loaded longest ago go first. */
  readonly capacity: number
  /** How long a value counts without being loaded again, milliseconds: the bound for a change that no notice tells of. */
  readonly timeToLive: number
  /** Reads values; a key without value is left out. `last` is the value that was loaded before, if it is kept. */
  readonly load: (
    keys: ReadonlyArray<K>,
    last: (key: K) => V | undefined
  ) => Effect.Effect<ReadonlyMap<K, V>, E>
  /** False: the value is returned to whoever asks for it now, and not kept. Default: all are kept. */
  readonly keeps?: (value: V) => boolean
}

export interface NodeCache<in out K, in out V, out E> {
  /** The value if it counts; undefined when it must be loaded. */
  readonly fresh: (key: K) => V | undefined
  /** The value as it was loaded last, also when it no longer counts. */
  readonly last: (key: K) => V | undefined
  /** The values of the keys; loads those that are not fresh in one call. */
  readonly get: (keys: ReadonlyArray<K>) => Effect.Effect<ReadonlyMap<K, V>, E>
  /** The value of the key has changed: it is loaded again when it is asked for. */
  readonly forget: (key: K) => void
  /** Any value may have changed. */
  readonly forgetAll: () => void
}

interface Entry<V> {
  readonly value: V
  /** Unix milliseconds. */
  readonly until: number
  readonly epoch: number
}

/**
 * A value that is being loaded while its key is forgotten is returned to whoever
 * asked for it, and not kept.
 */
export const make = Effect.fnUntraced(function*<K, V, E>(
  { capacity, keeps = () => true, load, timeToLive }: Options<K, V, E>
): Effect.fn.Return<NodeCache<K, V, E>> {
  const clock = yield* Clock.Clock
  const entries = new Map<K, Entry<V>>()
  /** Grows when any value may have changed: what was loaded in an earlier epoch is not fresh. */
  let epoch = 0
  /** Grows with each change. */
  let changes = 0

  const isFresh = (entry: Entry<V>): boolean => entry.epoch === epoch && clock.currentTimeMillisUnsafe() < entry.until

  const fresh = (key: K): V | undefined => {
    const entry = entries.get(key)
    return entry !== undefined && isFresh(entry) ? entry.value : undefined
  }

  const last = (key: K): V | undefined => entries.get(key)?.value

  const keep = (loaded: ReadonlyMap<K, V>, until: number, began: number) => {
    for (const [key, value] of loaded) {
      entries.delete(key)
      if (keeps(value)) entries.set(key, { value, until, epoch: began })
    }
    if (entries.size <= capacity) return
    for (const key of entries.keys()) {
      if (entries.size <= capacity) return
      if (!loaded.has(key)) entries.delete(key)
    }
  }

  const get = Effect.fnUntraced(function*(keys: ReadonlyArray<K>) {
    const found = new Map<K, V>()
    const missing: Array<K> = []
    for (const key of keys) {
      const value = fresh(key)
      if (value === undefined) missing.push(key)
      else found.set(key, value)
    }
    if (missing.length === 0) return found
    const [began, changesBefore] = [epoch, changes]
    const until = clock.currentTimeMillisUnsafe() + timeToLive
    const loaded = yield* load(missing, last)
    if (changes === changesBefore) keep(loaded, until, began)
    for (const [key, value] of loaded) found.set(key, value)
    return found
  })

  return {
    fresh,
    last,
    get,
    forget: (key) => {
      changes++
      entries.delete(key)
    },
    forgetAll: () => {
      epoch++
    }
  }
})
