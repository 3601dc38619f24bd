/**
 * A bounded cache of stored values on one node. Other nodes may change the
 * values: the owner of the cache calls `forget` when it hears of a change.
 */
import { Clock, Effect } from "effect"

export interface Options<in out K, in out V, out E> {
  /** Values that the cache keeps. When there are more, it drops those that were loaded longest ago. */
  readonly capacity: number
  /** How long a loaded value is fresh, milliseconds. A change that the cache does not hear of counts after this time. */
  readonly timeToLive: number
  /** Reads values. The result leaves out keys without value. `last` returns the value loaded before, if it is still kept. */
  readonly load: (
    keys: ReadonlyArray<K>,
    last: (key: K) => V | undefined
  ) => Effect.Effect<ReadonlyMap<K, V>, E>
  /** Whether to keep a loaded value. `get` returns a value even if it is not kept. Default: all are kept. */
  readonly keeps?: (value: V) => boolean
}

export interface NodeCache<in out K, in out V, out E> {
  /** Returns the value if it is fresh; undefined if it must be loaded. */
  readonly fresh: (key: K) => V | undefined
  /** Returns the value that was loaded last, fresh or not. */
  readonly last: (key: K) => V | undefined
  /** Returns the values of the keys. Loads those that are not fresh in one call of `load`. */
  readonly get: (keys: ReadonlyArray<K>) => Effect.Effect<ReadonlyMap<K, V>, E>
  /** The value of the key has changed: the next `get` loads it again. */
  readonly forget: (key: K) => void
  /** Any value may have changed: the next `get` of each loads it again. */
  readonly forgetAll: () => void
}

interface Entry<V> {
  readonly value: V
  /** Unix milliseconds. */
  readonly until: number
  readonly epoch: number
}

/** Makes a cache. If `forget` runs during a load, `get` returns the loaded values and does not keep them. */
export const make = Effect.fnUntraced(function*<K, V, E>(
  { capacity, keeps = () => true, load, timeToLive }: Options<K, V, E>
): Effect.fn.Return<NodeCache<K, V, E>> {
  const clock = yield* Clock.Clock
  const entries = new Map<K, Entry<V>>()
  /** Grows with each `forgetAll`: a value that was loaded in an earlier epoch is not fresh. */
  let epoch = 0
  /** Grows with each `forget`. */
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

  /** Loads what is missing, beside what was found. */
  const complete = (found: Map<K, V>, missing: ReadonlyArray<K>) => {
    const [began, changesBefore] = [epoch, changes]
    const until = clock.currentTimeMillisUnsafe() + timeToLive
    return Effect.map(load(missing, last), (loaded) => {
      if (changes === changesBefore) keep(loaded, until, began)
      for (const [key, value] of loaded) found.set(key, value)
      return found
    })
  }

  const get = (keys: ReadonlyArray<K>): Effect.Effect<ReadonlyMap<K, V>, E> =>
    Effect.suspend(() => {
      const found = new Map<K, V>()
      const missing: Array<K> = []
      for (const key of keys) {
        const value = fresh(key)
        if (value === undefined) missing.push(key)
        else found.set(key, value)
      }
      return missing.length === 0 ? Effect.succeed(found) : complete(found, missing)
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
