/**
 * The shadow of a device: the latest values that the device has reported, the
 * values that the application desires, and when each was set
 * (docs/protocol/shadow.md).
 */
import type { DeviceId } from "../device/Device.ts"
import { countedTime, isAhead } from "../kernel/DeviceTime.ts"
import { equalJson, isFiniteJson, type Json } from "../kernel/Json.ts"
import { isWellFormed } from "../kernel/Text.ts"

/** The value of one property. */
export interface ShadowEntry {
  readonly value: Json
  /** When the value was measured or desired, Unix milliseconds. */
  readonly time: number
  /** When a reported value arrived whose time was ahead of the cloud, Unix milliseconds; others do not have it. */
  readonly receivedAt?: number
  /** How often the desired value was set; only desired values have it. */
  readonly version?: number
}

/** Property to entry. */
export type ShadowSide = Readonly<Record<string, ShadowEntry>>

export interface Shadow {
  readonly deviceId: DeviceId
  /** Grows by one with each accepted update, or becomes the version that the device gives; 0: no update yet. */
  readonly version: number
  readonly reported: ShadowSide
  readonly desired: ShadowSide
  /** The latest accepted update, Unix milliseconds; null: none. */
  readonly updatedAt: number | null
}

/** Properties on each side that the thing model does not have, at most. Those that it has are not limited. */
export const maxAttributes = 128
/** Length of both sides (identifiers and values) as JSON, at most, in UTF-16 code units. */
export const maxLength = 256 * 1024
/** Objects and arrays inside each other, at most; the value itself counts. */
export const maxNesting = 8
/** Characters of a property identifier, at most, including a block prefix. */
export const maxPropertyIdLength = 128

/** The shadow of a device without updates. */
export const emptyShadow = (deviceId: DeviceId): Shadow => ({
  deviceId,
  version: 0,
  reported: {},
  desired: {},
  updatedAt: null
})

/** Whether the thing model of a device has a property. */
export type IsModelled = (id: string) => boolean

/** A state to which a draft can be set back. */
export interface ShadowMark {
  readonly reported: ShadowSide
  readonly desired: ShadowSide
  readonly version: number
  readonly updatedAt: number | null
  readonly isChanged: boolean
}

/**
 * Collects changes of a shadow. Copies a side when it changes, and measures it
 * when it may become too long. `accept` ends each change and sets its version.
 */
export class ShadowDraft {
  readonly #before: Shadow
  readonly #sides: { readonly reported: Side; readonly desired: Side }
  #version: number
  #updatedAt: number | null
  // A device may set the version back and report again within a millisecond: both may be as before.
  #isChanged = false

  /** `isModelled`: whether the thing model of the device has a property. Default: it has none. */
  constructor(shadow: Shadow, isModelled: IsModelled = () => false) {
    this.#before = shadow
    const reported = new Side(shadow.reported, isModelled)
    const desired = new Side(shadow.desired, isModelled)
    reported.other = desired
    desired.other = reported
    this.#sides = { reported, desired }
    this.#version = shadow.version
    this.#updatedAt = shadow.updatedAt
  }

  get version(): number {
    return this.#version
  }

  get reported(): ShadowSide {
    return this.#sides.reported.entries
  }

  get desired(): ShadowSide {
    return this.#sides.desired.entries
  }

  /**
   * Sets a value, unless the stored one is newer. Returns undefined, or a sentence
   * that says which limit the value would break; then nothing changes. With `now`,
   * Unix milliseconds, a stored time too far ahead counts as now, and a value from
   * now is never too old: a clock that was wrong once freezes nothing.
   */
  set(side: "reported" | "desired", id: string, entry: ShadowEntry, now?: number): string | undefined {
    return this.#sides[side].set(id, entry, now)
  }

  /** Whether the reported side can take the properties `ids`, as far as their number is concerned. */
  hasRoomFor(ids: Iterable<string>): boolean {
    return this.#sides.reported.hasRoomFor(ids)
  }

  /** Sets a desired value and raises the version of the property by one. Returns as `set` does. */
  desire(id: string, value: Json, time: number): string | undefined {
    const previous = Object.hasOwn(this.desired, id) ? this.desired[id] : undefined
    return this.set("desired", id, {
      value,
      time: Math.max(time, previous?.time ?? 0),
      version: (previous?.version ?? 0) + 1
    })
  }

  /** Removes a value. Without effect if there is none. */
  remove(side: "reported" | "desired", id: string): undefined {
    return this.#sides[side].remove(id)
  }

  /** Removes all values of a side. */
  clear(side: "reported" | "desired"): void {
    this.#sides[side].clear()
  }

  /** Holds the draft as it is now. */
  mark(): ShadowMark {
    return {
      reported: this.#sides.reported.hold(),
      desired: this.#sides.desired.hold(),
      version: this.#version,
      updatedAt: this.#updatedAt,
      isChanged: this.#isChanged
    }
  }

  /** Takes back all changes since the mark. */
  rollBack({ desired, isChanged, reported, updatedAt, version }: ShadowMark): void {
    this.#sides.reported.rollBack(reported)
    this.#sides.desired.rollBack(desired)
    this.#version = version
    this.#updatedAt = updatedAt
    this.#isChanged = isChanged
  }

  /** Ends one change: sets the next version, or the given one. `at`: Unix milliseconds. */
  accept(at: number, version = this.#version + 1): void {
    this.#version = version
    this.#updatedAt = at
    this.#isChanged = true
  }

  /** Returns the changed shadow. Returns the original object if no change was accepted. */
  finish(): Shadow {
    if (!this.#isChanged) return this.#before
    return {
      deviceId: this.#before.deviceId,
      version: this.#version,
      reported: this.reported,
      desired: this.desired,
      updatedAt: this.#updatedAt
    }
  }
}

class Side {
  entries: ShadowSide
  /** The other side, which shares the length. */
  other: Side = this
  readonly #isModelled: IsModelled
  #own: Record<string, ShadowEntry> | undefined
  /** Properties that the model does not have; -1: not counted. */
  #unmodelled = -1
  /** -1: not measured. */
  #length = -1

  constructor(entries: ShadowSide, isModelled: IsModelled) {
    this.entries = entries
    this.#isModelled = isModelled
  }

  #writable(): Record<string, ShadowEntry> {
    if (this.#own === undefined) {
      this.#own = { ...this.entries }
      this.entries = this.#own
    }
    return this.#own
  }

  get unmodelled(): number {
    if (this.#unmodelled < 0) {
      this.#unmodelled = Object.keys(this.entries).reduce((count, id) => this.#isModelled(id) ? count : count + 1, 0)
    }
    return this.#unmodelled
  }

  /** The sum of all entries. */
  get length(): number {
    if (this.#length < 0) this.#length = sideLength(this.entries)
    return this.#length
  }

  hasRoomFor(ids: Iterable<string>): boolean {
    let count = this.unmodelled
    for (const id of ids) if (!Object.hasOwn(this.entries, id) && !this.#isModelled(id)) count++
    return count <= maxAttributes
  }

  /** Returns the entries. Later changes leave the returned object as it is. */
  hold(): ShadowSide {
    this.#own = undefined
    return this.entries
  }

  rollBack(entries: ShadowSide): void {
    this.entries = entries
    this.#own = undefined
    this.#unmodelled = -1
    this.#length = -1
  }

  set(id: string, entry: ShadowEntry, now = Infinity): string | undefined {
    const refused = refusePropertyId(id) ?? refuseValue(entry.value)
    if (refused !== undefined) return refused
    const previous = Object.hasOwn(this.entries, id) ? this.entries[id] : undefined
    if (previous !== undefined && entry.time < countedTime(previous.time, now) && entry.time !== now) return undefined
    const isNewAttribute = previous === undefined && !this.#isModelled(id)
    if (isNewAttribute && this.unmodelled >= maxAttributes) {
      return `more than ${maxAttributes} attributes that the thing model does not have`
    }
    if (this.#length >= 0 || previous === undefined || mayBeLonger(entry.value, previous.value)) {
      const length = this.length + entryLength(id, entry.value) -
        (previous === undefined ? 0 : entryLength(id, previous.value))
      if (jsonLength(length) + jsonLength(this.other.length) > maxLength) {
        return `the shadow would be longer than ${maxLength} characters`
      }
      this.#length = length
    }
    if (isNewAttribute) this.#unmodelled++
    this.#writable()[id] = entry
    return undefined
  }

  remove(id: string): undefined {
    if (!Object.hasOwn(this.entries, id)) return undefined
    const entries = this.#writable()
    delete entries[id]
    this.#unmodelled = -1
    this.#length = -1
    return undefined
  }

  clear(): void {
    this.#own = {}
    this.entries = this.#own
    this.#unmodelled = 0
    this.#length = -1
  }
}

/** Removes all desired values. Returns the same object if there are none. `at`: Unix milliseconds. */
export const clearDesired = (shadow: Shadow, at: number): Shadow => {
  if (Object.keys(shadow.desired).length === 0) return shadow
  const draft = new ShadowDraft(shadow)
  draft.clear("desired")
  draft.accept(at)
  return draft.finish()
}

/** When the device had the reported value. A device whose clock is ahead had it no later than its report arrived. */
export const reportedAt = ({ receivedAt, time }: ShadowEntry): number => receivedAt ?? time

/**
 * Whether the device had the reported value after `at`. A report from more than five
 * minutes after `now` was stored by a clock that was wrong: it is not later than what
 * the right clock has said. Unix milliseconds.
 */
export const isReportedAfter = (entry: ShadowEntry, at: number, now: number): boolean => {
  const reported = reportedAt(entry)
  return reported > at && (!isAhead(reported, now) || isAhead(at, now))
}

/**
 * Returns the desired values that the device has still to apply: those that
 * differ from the reported value and are not older than it. With `now`, Unix
 * milliseconds, a value reported more than five minutes after it counts as older than
 * one desired before that: a clock that was wrong once holds nothing back.
 */
export const delta = ({ desired, reported }: Pick<Shadow, "desired" | "reported">, now = Infinity): ShadowSide =>
  Object.fromEntries(
    Object.entries(desired).filter(([id, wanted]) => {
      const actual = Object.hasOwn(reported, id) ? reported[id] : undefined
      return actual === undefined ||
        (!isReportedAfter(actual, wanted.time, now) && !equalJson(actual.value, wanted.value))
    })
  )

/** Returns why an id cannot be that of a property; undefined: it can. */
export const refusePropertyId = (id: string): string | undefined => {
  if (id === "" || id.length > maxPropertyIdLength || id === "__proto__" || !isWellFormed(id)) {
    return `expected an identifier of 1 to ${maxPropertyIdLength} characters`
  }
  return undefined
}

const refuseValue = (value: Json): string | undefined =>
  isFiniteJson(value, maxNesting)
    ? undefined
    : `expected finite numbers, text, true, false, null, nested at most ${maxNesting} levels`

/** A text of at most this length may replace a text that is not shorter without a new measurement. */
const shortText = 16

/** Returns false if the value takes about as much room as the previous one. */
const mayBeLonger = (value: Json, previous: Json): boolean =>
  typeof value === "string"
    ? value.length > shortText || typeof previous !== "string" || value.length > previous.length
    : typeof value === "object" && value !== null

/** With the colon in it and the comma or brace behind it. */
const entryLength = (id: string, value: Json): number => JSON.stringify(id).length + JSON.stringify(value).length + 2

const sideLength = (side: ShadowSide): number =>
  Object.entries(side).reduce((sum, [id, { value }]) => sum + entryLength(id, value), 0)

/** The length of a side as JSON, from that of its entries. */
const jsonLength = (entries: number): number => Math.max(entries + 1, "{}".length)
