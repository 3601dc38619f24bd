/**
 * Finds the changes of properties within one message that something reacts to.
 */
import type { ChangedValue } from "../events/DeviceChange.ts"
import type { PropertyWatch } from "../events/Reactions.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import type { ShadowDraft, ShadowEntry } from "../shadow/Shadow.ts"

/** Returns whether a property has another value than before; undefined: it had none. */
const isChange = (before: ShadowEntry | undefined, after: ShadowEntry): boolean =>
  after !== before && (before === undefined || !equalJson(before.value, after.value))

/**
 * Follows a draft while the values of one message are set, and emits the changes
 * that a watch wants. A message may hold several values of a property: each is a
 * change of its own, so a repeated property ends the change before it. Each value
 * costs the same, however many properties the device has.
 */
export class ChangeTracker {
  readonly #draft: ShadowDraft
  readonly #watch: PropertyWatch
  readonly #emit: (properties: Readonly<Record<string, ChangedValue>>) => void
  /** The properties of the message that have been set so far. */
  readonly #ids = new Set<string>()
  /** The properties that the current change has set, with what they were before it. */
  #before = new Map<string, ShadowEntry | undefined>()
  /** The entry of the property that is being set. */
  #earlier: ShadowEntry | undefined
  /** The watch wants the current change. */
  #mayFire = false

  constructor(
    draft: ShadowDraft,
    watch: PropertyWatch,
    emit: (properties: Readonly<Record<string, ChangedValue>>) => void
  ) {
    this.#draft = draft
    this.#watch = watch
    this.#emit = emit
  }

  /** Call it before the value of a property is set. */
  setting(id: string): void {
    const { reported } = this.#draft
    this.#earlier = Object.hasOwn(reported, id) ? reported[id] : undefined
  }

  /** Call it after `entry` is set; `admitted` is the value that the model admits. */
  wasSet(id: string, entry: ShadowEntry, admitted: Json): void {
    const earlier = this.#earlier
    const current = this.#draft.reported[id]!
    if (this.#ids.has(id) && isChange(earlier, current)) {
      if (this.#mayFire) {
        this.#change((changed) => changed === id ? earlier! : this.#draft.reported[changed]!)
        this.#before = new Map()
      }
      this.#before.set(id, earlier)
      this.#mayFire = false
    }
    this.#ids.add(id)
    if (!this.#before.has(id)) this.#before.set(id, earlier)
    if (!this.#mayFire && current === entry && this.#watch.mayFire(id, admitted)) {
      this.#mayFire = isChange(this.#before.get(id), current)
    }
  }

  /** Call it at the end of the message. */
  finish(): void {
    if (this.#mayFire) this.#change((id) => this.#draft.reported[id]!)
  }

  /** Emits the properties that differ from those before the current change. */
  #change(entryOf: (id: string) => ShadowEntry): void {
    const properties: Record<string, ChangedValue> = {}
    for (const [id, before] of this.#before) {
      const entry = entryOf(id)
      if (!isChange(before, entry)) continue
      const { time, value } = entry
      properties[id] = before === undefined ? { value, time } : { value, time, previous: before.value }
    }
    this.#emit(properties)
  }
}
