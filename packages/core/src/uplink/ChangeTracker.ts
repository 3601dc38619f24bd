/**
 * Finds the changes of properties within one message that something reacts to.
 */
import type { ChangedValue } from "../events/DeviceChange.ts"
import type { PropertyWatch } from "../events/Reactions.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import type { ShadowDraft, ShadowEntry, ShadowSide } from "../shadow/Shadow.ts"

/** Returns whether a property has another value in `after` than in `before`. */
const hasChanged = (before: ShadowSide, after: ShadowSide, id: string): boolean =>
  after[id] !== before[id] && (!Object.hasOwn(before, id) || !equalJson(before[id]!.value, after[id]!.value))

/**
 * Follows a draft while the values of one message are set, and emits the changes
 * that a watch wants. A message may hold several values of a property: each is a
 * change of its own, so a repeated property ends the change before it.
 */
export class ChangeTracker {
  readonly #draft: ShadowDraft
  readonly #watch: PropertyWatch
  readonly #emit: (properties: Readonly<Record<string, ChangedValue>>) => void
  /** The properties of the message that have been set so far. */
  readonly #ids = new Set<string>()
  /** The reported values before the current change. */
  #before: ShadowSide
  /** The reported values before the property that is being set. */
  #earlier: ShadowSide
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
    this.#before = draft.holdReported()
    this.#earlier = this.#before
  }

  /** Call it before the value of a property is set. */
  setting(id: string): void {
    this.#earlier = this.#ids.has(id) ? this.#draft.holdReported() : this.#before
  }

  /** Call it after `entry` is set; `admitted` is the value that the model admits. */
  wasSet(id: string, entry: ShadowEntry, admitted: Json): void {
    if (this.#ids.has(id) && hasChanged(this.#earlier, this.#draft.reported, id)) {
      if (this.#mayFire) this.#change(this.#earlier)
      this.#before = this.#mayFire ? this.#earlier : { ...this.#before, [id]: this.#earlier[id]! }
      this.#mayFire = false
    }
    this.#ids.add(id)
    const { reported } = this.#draft
    if (!this.#mayFire && reported[id] === entry && this.#watch.mayFire(id, admitted)) {
      this.#mayFire = hasChanged(this.#before, reported, id)
    }
  }

  /** Call it at the end of the message. */
  finish(): void {
    if (this.#mayFire) this.#change(this.#draft.reported)
  }

  /** Emits the properties that differ from those before the current change. */
  #change(after: ShadowSide): void {
    const properties: Record<string, ChangedValue> = {}
    for (const id of this.#ids) {
      if (!hasChanged(this.#before, after, id)) continue
      const { time, value } = after[id]!
      properties[id] = Object.hasOwn(this.#before, id)
        ? { value, time, previous: this.#before[id]!.value }
        : { value, time }
    }
    this.#emit(properties)
  }
}
