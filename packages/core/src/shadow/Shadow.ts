/**
 * The shadow of a device: the latest values that it reported, the values that
 * are desired of it, and when each was set (decisions, section 9).
 */
import type { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"

export type Json = Schema.Json

export interface ShadowEntry {
  readonly value: Json
  /** When the value was measured or asked for, Unix milliseconds. */
  readonly time: number
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

/** Properties that a device reported in one message. */
export interface PropertyReport {
  readonly properties: ShadowSide
  /** Unix milliseconds. */
  readonly receivedAt: number
}

/** Property to the reason why its value was not kept. */
export type Dropped = Readonly<Record<string, string>>

const nothing: Dropped = {}

/**
 * Takes the reports of one device into its shadow, in their order. A value
 * whose `time` is older than that of the stored one does not replace it. A
 * property that would break a limit is dropped with its reason; the others stay.
 */
export const applyReports = (
  shadow: Shadow,
  reports: ReadonlyArray<PropertyReport>
): readonly [dropped: ReadonlyArray<Dropped>, shadow: Shadow] => {
  const reported: Record<string, ShadowEntry> = { ...shadow.reported }
  let count = Object.keys(reported).length
  let length = -1
  const dropped = reports.map(({ properties }) => {
    let reasons: Record<string, string> | undefined
    for (const id of Object.keys(properties)) {
      const entry = properties[id]!
      const previous = Object.hasOwn(reported, id) ? reported[id] : undefined
      if (previous !== undefined && entry.time < previous.time) continue
      const reason = refusePropertyId(id) ?? refuseNesting(entry.value) ??
        (previous === undefined ? refuseCount(count) : undefined)
      if (reason !== undefined) {
        ;(reasons ??= {})[id] = reason
        continue
      }
      if (length >= 0 || previous === undefined || mayBeLonger(entry.value, previous.value)) {
        if (length < 0) length = sideLength(reported)
        const next = length + entryLength(id, entry.value) -
          (previous === undefined ? 0 : entryLength(id, previous.value))
        if (next > maxSideLength) {
          ;(reasons ??= {})[id] = `the shadow would be longer than ${maxSideLength} characters`
          continue
        }
        length = next
      }
      if (previous === undefined) count++
      reported[id] = entry
    }
    return reasons ?? nothing
  })
  const updatedAt = reports.at(-1)?.receivedAt ?? shadow.updatedAt
  return [dropped, { ...shadow, reported, version: shadow.version + reports.length, updatedAt }]
}

/** Removes all desired values; the same shadow when there are none. */
export const clearDesired = (shadow: Shadow, at: number): Shadow =>
  Object.keys(shadow.desired).length === 0
    ? shadow
    : { ...shadow, desired: {}, version: shadow.version + 1, updatedAt: at }

const refusePropertyId = (id: string): string | undefined => {
  if (id === "" || id.length > maxPropertyIdLength) {
    return `expected an identifier of 1 to ${maxPropertyIdLength} characters`
  }
  return undefined
}

const refuseCount = (count: number): string | undefined =>
  count >= maxAttributes ? `more than ${maxAttributes} attributes` : undefined

const refuseNesting = (value: Json): string | undefined =>
  nesting(value, maxNesting) ? undefined : `nested deeper than ${maxNesting} levels`

/** Whether `value` has at most `levels` objects and arrays inside each other. */
const nesting = (value: Json, levels: number): boolean => {
  if (typeof value !== "object" || value === null) return true
  if (levels === 0) return false
  return Object.values(value).every((member) => nesting(member, levels - 1))
}

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
