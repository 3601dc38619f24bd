/**
 * The topics of a device, and what is carried on them (alink-facts, section 3).
 */
import { type DeviceName, type ProductKey, userMethod } from "@device-cloud/core"

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
 * The device that all of `topic`, a topic or a filter, belongs to. Wildcards do
 * not reach beyond it; in the place of its product key or name they name none.
 */
export const ownerOf = (topic: string): Owner | undefined => {
  const levels = topic.split("/")
  const family = families.find(({ followed, words }) =>
    (followed ? levels.length > words.length + 2 : levels.length === words.length + 2) &&
    words.every((word, i) => word === undefined ? levels[i] !== "#" : word === levels[i])
  )
  const isUserTopic = family === undefined && levels[0] === "" && levels[3] === "user" && levels.length > 4
  const place = family?.words.length ?? (isUserTopic ? 1 : undefined)
  return place === undefined ? undefined : {
    productKey: levels[place] as ProductKey,
    deviceName: levels[place + 1] as DeviceName
  }
}

/** The prefix of the topics whose rest is a method, for example `thing/event/property/post`. */
export const methodPrefix = ({ deviceName, productKey }: Owner): string => `/sys/${productKey}/${deviceName}/`

/** `thing.event.property.post` is carried on `thing/event/property/post` below the prefix. */
export const methodToTopic = (prefix: string, method: string): string => prefix + method.replaceAll(".", "/")

/** What a device wants with a message on one of its topics. */
export interface Route {
  /**
   * `request` wants a reply, `notice` has none, `answer` is one; `session` is a
   * request about sessions of sub-devices. `raw` and `user` carry bytes, `shadow`
   * and `time` have forms of their own; so have the replies to `file` and
   * `upgrade`.
   */
  readonly kind: "request" | "notice" | "answer" | "session" | "raw" | "shadow" | "time" | "user" | "file" | "upgrade"
  readonly method: string
  /** Where the reply goes; empty: nowhere. */
  readonly replyTopic: string
  /** Of `user`: the levels after that. */
  readonly userTopic?: string
}

/** The way of a topic; undefined: nothing is carried on it. */
export const route = (topicWithQuery: string, prefix: string, { deviceName, productKey }: Owner): Route | undefined => {
  const query = topicWithQuery.indexOf("?")
  const topic = query < 0 ? topicWithQuery : topicWithQuery.slice(0, query)
  const own = `${productKey}/${deviceName}`
  if (topic.startsWith(prefix)) return routeMethod(topic, topic.slice(prefix.length))
  if (topic === `/shadow/update/${own}`) {
    return { kind: "shadow", method: "thing.shadow", replyTopic: shadowTopic(own) }
  }
  if (topic === `/ext/ntp/${own}/request`) {
    return { kind: "time", method: "", replyTopic: `/ext/ntp/${own}/response` }
  }
  const sessionPrefix = `/ext/session/${own}/combine/`
  if (topic.startsWith(sessionPrefix)) {
    return { kind: "session", method: `combine.${topic.slice(sessionPrefix.length)}`, replyTopic: `${topic}_reply` }
  }
  const upgrade = topic.endsWith(own) ? upgradeRoutes.get(topic.slice(0, -own.length)) : undefined
  if (upgrade !== undefined) return upgrade
  if (topic === `/ota/device/request/${own}`) {
    // What is asked on this topic is answered on it.
    return { kind: "upgrade", method: "thing.ota.firmware.get", replyTopic: topic }
  }
  const userPrefix = userTopicPrefix({ deviceName, productKey })
  if (topic.startsWith(userPrefix) && topic.length > userPrefix.length) {
    return { kind: "user", method: userMethod, replyTopic: "", userTopic: topic.slice(userPrefix.length) }
  }
  return topic.startsWith("/ext/rrpc/") ? rrpcAnswer : undefined
}

const notice = (method: string): Route => ({ kind: "notice", method, replyTopic: "" })

/** What a device says of upgrades, by what stands before its product key and name. */
const upgradeRoutes: ReadonlyMap<string, Route> = new Map([
  ["/ota/device/inform/", notice("thing.ota.inform")],
  ["/ota/device/progress/", notice("thing.ota.progress")]
])

/** Where a device is told that there is something for it. */
export const upgradeTopic = ({ deviceName, productKey }: Owner): string =>
  `/ota/device/upgrade/${productKey}/${deviceName}`

/** Where a gateway is told what is wrong with a session of a sub-device. */
export const sessionErrorTopic = ({ deviceName, productKey }: Owner): string => `/ext/error/${productKey}/${deviceName}`

/** What the topics begin with that the application and the device agree on. */
export const userTopicPrefix = ({ deviceName, productKey }: Owner): string => `/${productKey}/${deviceName}/user/`

/** An answer to a call that waited for it names the call by the id of its message. */
const rrpcAnswer: Route = { kind: "answer", method: "thing.service.rrpc_reply", replyTopic: "" }

const routeMethod = (topic: string, path: string): Route | undefined => {
  const replyTopic = `${topic}_reply`
  if (path === "thing/model/up_raw") return { kind: "raw", method: "thing.model.up_raw", replyTopic }
  if (path === "thing/file/download") return { kind: "file", method: "thing.file.download", replyTopic }
  if (path === "_thing/diag/post") return { kind: "request", method: "thing.diag.post", replyTopic }
  if (path.startsWith("rrpc/response/")) return rrpcAnswer
  const method = path.replaceAll("/", ".")
  if (!method.startsWith("thing.")) return undefined
  if (!method.endsWith("_reply")) return { kind: "request", method, replyTopic }
  const isAnswer = method.startsWith("thing.service.") || method === "thing.mesh.raw_reply"
  return isAnswer ? { kind: "answer", method, replyTopic: "" } : undefined
}

/** Where the cloud speaks of the shadow of the device with these product key and name. */
export const shadowTopic = (own: string): string => `/shadow/get/${own}`

/** Whether `filter` covers `topic`, both without `$` topics. */
export const covers = (filter: string, topic: string): boolean => {
  const filterLevels = filter.split("/")
  const topicLevels = topic.split("/")
  return filterLevels.every((level, i) =>
    level === "#" || (i < topicLevels.length && (level === "+" || level === topicLevels[i]))
  ) && (filterLevels.length === topicLevels.length || filterLevels.at(-1) === "#")
}
