/**
 * The topics of a device and the messages that they carry
 * (`docs/protocol/topics.md`).
 */
import { userMethod } from "@device-cloud/core"
import type { Owner } from "./TopicOwner.ts"

/** What the messages on a topic look like, and whether the cloud replies to them. */
export type Form =
  /** JSON with `params`; the cloud replies. */
  | "request"
  /** JSON with `params`; the cloud does not reply. */
  | "notice"
  /** A reply of the device to the cloud. */
  | "answer"
  /** A request about the sessions of sub-devices. */
  | "session"
  /** Bytes that the cloud stores as they are. */
  | "bytes"
  /** A shadow message, with a reply of its own form. */
  | "shadow"
  /** A request for a block of a file; the reply carries bytes. */
  | "file"
  /** A request for firmware; the reply looks like the notice of an upgrade. */
  | "upgrade"
  /** Bytes on a topic that the application and the device agree on. */
  | "user"
  /** A question for the time. */
  | "time"

/** What a device wants with a message on one of its topics. */
export interface Route {
  readonly form: Form
  /** For example `thing.event.property.post`. */
  readonly method: string
  /** The topic of the reply; empty: there is none. */
  readonly replyTopic: string
  /** For the form `user`: the levels after `user/`. */
  readonly userTopic?: string
}

/** Returns the prefix of the topics that end with a method, for example `/sys/pk/dn/`. */
export const methodPrefix = ({ deviceName, productKey }: Owner): string => `/sys/${productKey}/${deviceName}/`

/** Returns the topic of a method: `thing.event.property.post` goes to `{prefix}thing/event/property/post`. */
export const methodToTopic = (prefix: string, method: string): string => prefix + method.replaceAll(".", "/")

/** Returns the topic on which a device learns of an upgrade. */
export const upgradeTopic = ({ deviceName, productKey }: Owner): string =>
  `/ota/device/upgrade/${productKey}/${deviceName}`

/** Returns the topic on which a gateway learns of an error in the session of a sub-device. */
export const sessionErrorTopic = ({ deviceName, productKey }: Owner): string => `/ext/error/${productKey}/${deviceName}`

/** Returns the prefix of the topics that the application and the device agree on. */
export const userTopicPrefix = ({ deviceName, productKey }: Owner): string => `/${productKey}/${deviceName}/user/`

/** Returns the topic on which the cloud sends shadow messages. */
export const shadowTopic = ({ deviceName, productKey }: Owner): string => `/shadow/get/${productKey}/${deviceName}`

/** Returns what a message on this topic wants; undefined if the topic carries nothing. `prefix`: {@link methodPrefix}. */
export const route = (topicWithQuery: string, prefix: string, owner: Owner): Route | undefined => {
  const query = topicWithQuery.indexOf("?")
  const topic = query < 0 ? topicWithQuery : topicWithQuery.slice(0, query)
  if (topic.startsWith(prefix)) return routeMethod(topic, topic.slice(prefix.length))
  const own = `${owner.productKey}/${owner.deviceName}`
  if (topic === `/shadow/update/${own}`) {
    return { form: "shadow", method: "thing.shadow", replyTopic: shadowTopic(owner) }
  }
  if (topic === `/ext/ntp/${own}/request`) {
    return { form: "time", method: "", replyTopic: `/ext/ntp/${own}/response` }
  }
  const sessionPrefix = `/ext/session/${own}/combine/`
  if (topic.startsWith(sessionPrefix)) {
    return { form: "session", method: `combine.${topic.slice(sessionPrefix.length)}`, replyTopic: `${topic}_reply` }
  }
  const upgrade = topic.endsWith(own) ? upgradeRoutes.get(topic.slice(0, -own.length)) : undefined
  if (upgrade !== undefined) return upgrade
  // The reply goes to the topic of the request.
  if (topic === `/ota/device/request/${own}`) {
    return { form: "upgrade", method: "thing.ota.firmware.get", replyTopic: topic }
  }
  const userPrefix = userTopicPrefix(owner)
  if (topic.startsWith(userPrefix) && topic.length > userPrefix.length) {
    return { form: "user", method: userMethod, replyTopic: "", userTopic: topic.slice(userPrefix.length) }
  }
  return topic.startsWith("/ext/rrpc/") ? rrpcAnswer : undefined
}

const notice = (method: string): Route => ({ form: "notice", method, replyTopic: "" })

/** Reports about upgrades, by the part of the topic before product key and device name. */
const upgradeRoutes: ReadonlyMap<string, Route> = new Map([
  ["/ota/device/inform/", notice("thing.ota.inform")],
  ["/ota/device/progress/", notice("thing.ota.progress")]
])

/** A reply to a synchronous call. The id in the message names the call. */
const rrpcAnswer: Route = { form: "answer", method: "thing.service.rrpc_reply", replyTopic: "" }

/** `path`: the topic without the prefix. */
const routeMethod = (topic: string, path: string): Route | undefined => {
  const replyTopic = `${topic}_reply`
  if (path === "thing/model/up_raw") return { form: "bytes", method: "thing.model.up_raw", replyTopic }
  if (path === "thing/file/download") return { form: "file", method: "thing.file.download", replyTopic }
  if (path === "_thing/diag/post") return { form: "request", method: "thing.diag.post", replyTopic }
  if (path.startsWith("rrpc/response/")) return rrpcAnswer
  const method = path.replaceAll("/", ".")
  if (!method.startsWith("thing.")) return undefined
  if (!method.endsWith("_reply")) return { form: "request", method, replyTopic }
  const isAnswer = method.startsWith("thing.service.") || method === "thing.mesh.raw_reply"
  return isAnswer ? { form: "answer", method, replyTopic: "" } : undefined
}
