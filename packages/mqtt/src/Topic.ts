/**
 * The topics of a device, and what is carried on them (alink-facts, section 3).
 */
import type { DeviceName, ProductKey } from "@device-cloud/core"

interface Owner {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
}

/** Where product key and device name stand in the families of topics, by the words before them. */
const families: ReadonlyArray<{ readonly words: ReadonlyArray<string | undefined>; readonly followed: boolean }> = [
  { words: ["", "sys"], followed: true },
  { words: ["", "ext", "session"], followed: true },
  { words: ["", "ext", "ntp"], followed: true },
  { words: ["", "ext", "error"], followed: false },
  { words: ["", "ext", "rrpc", undefined, "sys"], followed: true },
  { words: ["", "ota", "device", undefined], followed: false },
  { words: ["", "shadow", undefined], followed: false }
]

/**
 * Whether `topic`, a topic or a filter, lies wholly within what belongs to the
 * device. Wildcards do not reach beyond it.
 */
export const belongsTo = (topic: string, { deviceName, productKey }: Owner): boolean => {
  const levels = topic.split("/")
  if (levels[0] === "" && levels[1] === productKey && levels[2] === deviceName && levels[3] === "user") {
    return levels.length > 4
  }
  return families.some(({ followed, words }) =>
    levels[words.length] === productKey && levels[words.length + 1] === deviceName &&
    (followed ? levels.length > words.length + 2 : levels.length === words.length + 2) &&
    words.every((word, i) => word === undefined ? levels[i] !== "#" : word === levels[i])
  )
}

/** The prefix of the topics whose rest is a method, for example `thing/event/property/post`. */
export const methodPrefix = ({ deviceName, productKey }: Owner): string => `/sys/${productKey}/${deviceName}/`

/** `thing.event.property.post` is carried on `thing/event/property/post` below the prefix. */
export const methodToTopic = (prefix: string, method: string): string => prefix + method.replaceAll(".", "/")

/** The method that a device asks for on a topic; undefined for its answers and for other topics. */
export const topicToMethod = (prefix: string, topic: string): string | undefined => {
  if (!topic.startsWith(prefix)) return undefined
  const query = topic.indexOf("?")
  const method = topic.slice(prefix.length, query < 0 ? undefined : query).replaceAll("/", ".")
  return method.startsWith("thing.") && !method.endsWith("_reply") ? method : undefined
}

/** Whether `filter` covers `topic`, both without `$` topics. */
export const covers = (filter: string, topic: string): boolean => {
  const filterLevels = filter.split("/")
  const topicLevels = topic.split("/")
  return filterLevels.every((level, i) =>
    level === "#" || (i < topicLevels.length && (level === "+" || level === topicLevels[i]))
  ) && (filterLevels.length === topicLevels.length || filterLevels.at(-1) === "#")
}
