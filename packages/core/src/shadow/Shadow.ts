/**
 * The shadow of a device: the latest values that it reported, the values that
 * are desired of it, and when each was set (decisions, section 9).
 */
import type { DeviceId } from "../device/Device.ts"
import { equalJson, isFiniteJson, type Json } from "../kernel/Json.ts"
import { isWellFormed } from "../kernel/Text.ts"

export interface ShadowEntry {
  readonly value: Json
  /** When the value was measured or asked for, Unix milliseconds. */
  readonly time: number
  /** Of a desired value: how often it was set. */
  readonly version?: number
}

export type ShadowSide = Readonly<Record<string, ShadowEntry>>

export interface Shadow {
  readonly deviceId: DeviceId
  /** Grows by one with each accepted update; 0: nothing was ever set. */
  readonly version: number
  readonly reported: ShadowSide
  readonly desired: ShadowSide
  /** The latest accepted update, Unix milliseconds; null: none. */
  readonly updatedAt: number | null
}

/** Attributes on each side. */
export const maxAttributes = 128
/** The values of one side as JSON, in UTF-16 code units. */
export const maxSideLength = 16 * 1024
/** Objects and arrays inside each other, the value itself counted. */
export const maxNesting = 8
/** Of a property identifier, with its block prefix if any. */
export const maxPropertyIdLength = 128

export const emptyShadow = (deviceId: DeviceId): Shadow => ({
  deviceId,
  version: 0,
  reported: {},
  desired: {},
  updatedAt: null
})

/**
 * A shadow that is being changed: sides are copied when they change, and
 * measured when they may grow too long. Each change that is accepted raises the
 * version once, by `accept`.
 */
export class ShadowDraft {
  readonly #before: Shadow
  readonly #sides: { readonly reported: Side; readonly desired: Side }
  #version: number
  #updatedAt: number | null

  constructor(shadow: Shadow) {
    this.#before = shadow
    this.#sides = { reported: new Side(shadow.reported), desired: new Side(shadow.desired) }
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
   * Sets a value, unless the stored one is newer. Answers why it cannot be kept
   * when it would break a limit.
   */
  set(side: "reported" | "desired", id: string, entry: ShadowEntry): string | undefined {
    return this.#sides[side].set(id, entry)
  }

  /** Sets a desired value, which gets the next version of its property. */
  desire(id: string, value: Json, time: number): string | undefined {
    const previous = Object.hasOwn(this.desired, id) ? this.desired[id] : undefined
    return this.set("desired", id, {
      value,
      time: Math.max(time, previous?.time ?? 0),
      version: (previous?.version ?? 0) + 1
    })
  }

  remove(side: "reported" | "desired", id: string): undefined {
    return this.#sides[side].remove(id)
  }

  clear(side: "reported" | "desired"): void {
    this.#sides[side].clear()
  }

  /** The reported values as they are now; what is set after this does not change them. */
  holdReported(): ShadowSide {
    return this.#sides.reported.hold()
  }

  /** Ends one change: the shadow gets the next version, or the one that is given. */
  accept(at: number, version = this.#version + 1): void {
    this.#version = version
    this.#updatedAt = at
  }

  /** The shadow that it was made of when no change was accepted. */
  finish(): Shadow {
    if (this.#version === this.#before.version && this.#updatedAt === this.#before.updatedAt) return this.#before
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
  #own: Record<string, ShadowEntry> | undefined
  #count = -1
  #length = -1

  constructor(entries: ShadowSide) {
    this.entries = entries
  }

  #writable(): Record<string, ShadowEntry> {
    if (this.#own === undefined) {
      this.#own = { ...this.entries }
      this.entries = this.#own
      this.#count = Object.keys(this.#own).length
    }
    return this.#own
  }

  hold(): ShadowSide {
    this.#own = undefined
    return this.entries
  }

  set(id: string, entry: ShadowEntry): string | undefined {
    const refused = refusePropertyId(id) ?? refuseValue(entry.value)
    if (refused !== undefined) return refused
    const previous = Object.hasOwn(this.entries, id) ? this.entries[id] : undefined
    if (previous !== undefined && entry.time < previous.time) return undefined
    const entries = this.#writable()
    const reason = previous === undefined ? refuseCount(this.#count) : undefined
    if (reason !== undefined) return reason
    if (this.#length >= 0 || previous === undefined || mayBeLonger(entry.value, previous.value)) {
      if (this.#length < 0) this.#length = sideLength(entries)
      const length = this.#length + entryLength(id, entry.value) -
        (previous === undefined ? 0 : entryLength(id, previous.value))
      if (length > maxSideLength) return `the shadow would be longer than ${maxSideLength} characters`
      this.#length = length
    }
    if (previous === undefined) this.#count++
    entries[id] = entry
    return undefined
  }

  remove(id: string): undefined {
    if (!Object.hasOwn(this.entries, id)) return undefined
    const entries = this.#writable()
    delete entries[id]
    this.#count--
    this.#length = -1
    return undefined
  }

  clear(): void {
    this.#own = {}
    this.entries = this.#own
    this.#count = 0
    this.#length = -1
  }
}

/** Removes all desired values; the same shadow when there are none. */
export const clearDesired = (shadow: Shadow, at: number): Shadow => {
  if (Object.keys(shadow.desired).length === 0) return shadow
  const draft = new ShadowDraft(shadow)
  draft.clear("desired")
  draft.accept(at)
  return draft.finish()
}

/** What is desired, not older than what the device reported of it, and different from that. */
export const delta = ({ desired, reported }: Pick<Shadow, "desired" | "reported">): ShadowSide =>
  Object.fromEntries(
    Object.entries(desired).filter(([id, wanted]) => {
      const actual = Object.hasOwn(reported, id) ? reported[id] : undefined
      return actual === undefined || (actual.time <= wanted.time && !equalJson(actual.value, wanted.value))
    })
  )

const refusePropertyId = (id: string): string | undefined => {
  if (id === "" || id.length > maxPropertyIdLength || id === "__proto__" || !isWellFormed(id)) {
    return `expected an identifier of 1 to ${maxPropertyIdLength} characters`
  }
  return undefined
}

const refuseCount = (count: number): string | undefined =>
  count >= maxAttributes ? `more than ${maxAttributes} attributes` : undefined

const refuseValue = (value: Json): string | undefined =>
  isFiniteJson(value, maxNesting)
    ? undefined
    : `expected finite numbers, text, true, false, null, nested at most ${maxNesting} levels`

/** Text of up to this length is not measured exactly: as JSON it may be longer. */
const shortText = 16

/** False when the value takes about as much room as the previous one. */
const mayBeLonger = (value: Json, previous: Json): boolean =>
  typeof value === "string"
    ? value.length > shortText || typeof previous !== "string" || value.length > previous.length
    : typeof value === "object" && value !== null

const entryLength = (id: string, value: Json): number => JSON.stringify(id).length + JSON.stringify(value).length + 2

const sideLength = (side: ShadowSide): number =>
  Object.entries(side).reduce((sum, [id, { value }]) => sum + entryLength(id, value), 2)
