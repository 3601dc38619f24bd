/**
 * A map whose entries come and go all the time, such as those of connections.
 *
 * `Map` and `Set` move to a new table again and again when that happens, and V8
 * keeps in each table that was left a reference to the next. Once such a table
 * has outlived two collections of the young generation, it keeps all that came
 * after it, with what was in them, until the next collection of everything. An
 * object in dictionary mode leaves no such trace.
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

  /** In no order. */
  values(): ReadonlyArray<V> {
    return Object.values(this.#entries)
  }
}
