/**
 * Counts the values of a report without reading them. Whatever costs work to read
 * counts at least once, so that a message of empty lists is not free.
 */
import { maxValues } from "../UplinkLimits.ts"

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Counts the members of an object: the values of a property post. */
export const ofMembers = (params: unknown): number => {
  if (!isMembers(params)) return 1
  let count = 0
  // oxlint-disable-next-line guard-for-in -- Parsed JSON inherits nothing. This makes no array for each message.
  for (const _ in params) count++
  return count
}

/** Counts `{id: one}` or `{id: [several]}`. What is left out costs nothing. */
const ofLists = (side: unknown): number => {
  if (side === undefined) return 0
  if (!isMembers(side)) return 1
  let count = 0
  for (const id in side) {
    if (!Object.hasOwn(side, id)) continue
    const listed = side[id]
    count += Array.isArray(listed) ? Math.max(listed.length, 1) : 1
  }
  return count
}

/** Counts the values and events of a batch. */
export const ofBatch = (params: unknown): number =>
  isMembers(params) ? ofLists(params["properties"]) + ofLists(params["events"]) : 1

/** Adds up the counts of items, each at least one; stops when there are too many. */
const sum = (items: unknown, ofItem: (item: unknown) => number): number => {
  if (items === undefined) return 0
  if (!Array.isArray(items)) return ofItem(items)
  let count = 0
  for (const item of items) {
    if (count > maxValues) return count
    count += Math.max(ofItem(item), 1)
  }
  return count
}

/** Counts the values and events of a gateway and of its sub-devices. */
export const ofPack = (params: unknown): number =>
  isMembers(params) ? ofBatch(params) + sum(params["subDevices"], ofBatch) : 1

/** Counts the values and events of a history. */
export const ofHistory = (params: unknown): number =>
  sum(params, (item) => isMembers(item) ? sum(item["properties"], ofLists) + sum(item["events"], ofLists) : 1)
