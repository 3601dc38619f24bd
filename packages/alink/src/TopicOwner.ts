/**
 * Which device a topic or filter belongs to (docs/protocol/topics.md).
 */
import type { DeviceName, ProductKey } from "@device-cloud/core"

/** The names by which a topic names its device. */
export interface Owner {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
}

/**
 * The families of topics, by the levels before product key and device name. An
 * undefined level may be anything. `followed`: more levels must come after them.
 */
const families: ReadonlyArray<{ readonly levels: ReadonlyArray<string | undefined>; readonly followed: boolean }> = [
  { levels: ["", "sys"], followed: true },
  { levels: ["", "ext", "session"], followed: true },
  { levels: ["", "ext", "ntp"], followed: true },
  { levels: ["", "ext", "error"], followed: false },
  { levels: ["", "ext", "rrpc", undefined, "sys"], followed: true },
  { levels: ["", "ota", "device", undefined], followed: false },
  { levels: ["", "shadow", undefined], followed: false }
]

/** Returns the topic without what follows a `?`: some SDKs add `?_rid=…`, which says nothing. */
export const withoutQuery = (topic: string): string => {
  const query = topic.indexOf("?")
  return query < 0 ? topic : topic.slice(0, query)
}

/**
 * Returns the device that everything `topic` covers belongs to; `topic` may be a
 * filter. Returns undefined if it belongs to no family. A wildcard in the place
 * of a name is returned as the name, which no device has.
 */
export const ownerOf = (topic: string): Owner | undefined => {
  const levels = withoutQuery(topic).split("/")
  const family = families.find((each) =>
    (each.followed ? levels.length > each.levels.length + 2 : levels.length === each.levels.length + 2) &&
    each.levels.every((level, i) => level === undefined ? levels[i] !== "#" : level === levels[i])
  )
  const place = family?.levels.length ?? placeInUserTopic(levels)
  return place === undefined ? undefined : {
    productKey: levels[place] as ProductKey,
    deviceName: levels[place + 1] as DeviceName
  }
}

/** Returns where a user topic names its product, which may stand behind `/ext/rrpc/{id}`. A broadcast is none. */
const placeInUserTopic = (levels: ReadonlyArray<string>): number | undefined => {
  if (levels[1] === "broadcast") return undefined
  const place = levels[1] === "ext" && levels[2] === "rrpc" && levels[3] !== "#" ? 4 : 1
  return levels[0] === "" && levels[place + 2] === "user" && levels.length > place + 3 ? place : undefined
}

/** Whether a filter covers only broadcasts to a product. */
export const isBroadcastFilter = (filter: string, { productKey }: Pick<Owner, "productKey">): boolean => {
  const prefix = broadcastTopic(productKey, "")
  return filter.startsWith(prefix) && filter.length > prefix.length
}

/** Returns the topic of a broadcast. `topic`: the levels behind those that name the product. */
export const broadcastTopic = (productKey: ProductKey, topic: string): string => `/broadcast/${productKey}/${topic}`

/** Returns `{productKey}/{deviceName}` of the owner; empty for a topic of nobody. No filter covers topics of two owners. */
export const ownerKey = (topic: string): string => {
  const owner = ownerOf(topic)
  return owner === undefined ? "" : `${owner.productKey}/${owner.deviceName}`
}
