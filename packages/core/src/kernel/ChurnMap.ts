/**
 * A map for entries that come and go thousands of times in a second, such as
 * those of connections. Collections of the young generation take 5 ms under
 * connecting devices; with `Map` they take 12 ms
 * (docs/decisions/0043-churn-map.md).
 *
 * `Map` and `Set` move to a new table again and again, and V8 keeps a reference
 * from each old table to the next. An old table that survives two collections of
 * the young generation keeps all later tables and their entries alive until the
 * next full collection. An object in dictionary mode has no such tables.
 */
export class ChurnMap<K extends number | string, V extends object> {
  readonly #entries: Record<K, V | undefined> = Object.create(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: K): V | undefined {
    return this.#entries[key]
  }

  set(key: K, value: V): void {
    if (this.#entries[key] === undefined) this.#size++
    this.#entries[key] = value
  }

  delete(key: K): void {
    if (this.#entries[key] === undefined) return
    this.#size--
    delete this.#entries[key]
  }

  /** Returns the values in no particular order. */
  values(): ReadonlyArray<V> {
    return Object.values(this.#entries)
  }
}
