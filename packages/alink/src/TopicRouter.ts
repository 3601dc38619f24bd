/**
 * The topics of a device and the messages that they carry
 * (docs/protocol/topics.md).
 */
import { type DeviceMethod, userMethod, userReplyMethod } from "@device-cloud/core"
import { type Owner, ownerOf, withoutQuery } from "./TopicOwner.ts"

/**
 * The form of a message on a topic: that of its device method, or `session`, a
 * request about the sessions of sub-devices.
 */
export type Form = DeviceMethod.MessageForm | "session"

/** What a device wants with a message on one of its topics. */
export interface Route {
  readonly form: Form
  /** For example `thing.event.property.post`. */
  readonly method: string
  /** The topic of the reply; empty: there is none. */
  readonly replyTopic: string
  /** For the form `user`: the levels after `user/`; of a reply, the id of its call. */
  readonly userTopic?: string
  readonly repliesTo?: string
}

/** Returns what a message on a topic wants; undefined if the topic carries nothing. `prefix`: {@link methodPrefix}. */
export type Router = (topic: string, prefix: string, owner: Owner) => Route | undefined

/** Finds the form of a device method; undefined if no method has this name. */
export type FindForm = (method: string) => DeviceMethod.MessageForm | undefined

/**
 * Makes a router. Every method that a feature or an application declares has the
 * topic `/sys/{pk}/{dn}/{method}` with `/` for `.`. The protocol gives some methods
 * a topic of their own.
 */
export const makeRouter = (formOf: FindForm): Router => (topicWithQuery, prefix, owner) => {
  const topic = withoutQuery(topicWithQuery)
  return topic.startsWith(prefix)
    ? routeMethod(topic, topic.slice(prefix.length), formOf)
    : routeOwnTopic(topic, owner)
}

/** Returns the prefix of the topics that end with a method, for example `/sys/pk/dn/`. */
export const methodPrefix = ({ deviceName, productKey }: Owner): string => `/sys/${productKey}/${deviceName}/`

/** Returns the topic of a method: `thing.event.property.post` goes to `{prefix}thing/event/property/post`. */
export const methodToTopic = (prefix: string, method: string): string => prefix + method.replaceAll(".", "/")

/** Returns the topic of a call that somebody waits for; the device replies on `{prefix}rrpc/response/{id}`. */
export const rrpcTopic = (prefix: string, id: string): string => `${prefix}rrpc/request/${id}`

/** Returns the topic of a call that names the topic of a message; the device replies on the same topic. */
export const extendedRrpcTopic = (id: string, topic: string): string => `/ext/rrpc/${id}${topic}`

/** Returns the topic of a call on a user topic; the device replies on the same topic. */
export const userCallTopic = (owner: Owner, id: string, topic: string): string =>
  extendedRrpcTopic(id, userTopicPrefix(owner) + topic)

/** Returns the topic on which a device learns of an upgrade. */
export const upgradeTopic = ({ deviceName, productKey }: Owner): string =>
  `/ota/device/upgrade/${productKey}/${deviceName}`

/** Returns the topic on which a gateway learns of an error in the session of a sub-device. */
export const sessionErrorTopic = ({ deviceName, productKey }: Owner): string => `/ext/error/${productKey}/${deviceName}`

/** Returns the prefix of the topics that the application and the device agree on. */
export const userTopicPrefix = ({ deviceName, productKey }: Owner): string => `/${productKey}/${deviceName}/user/`

/** Returns the topic on which the cloud sends shadow messages. */
export const shadowTopic = ({ deviceName, productKey }: Owner): string => `/shadow/get/${productKey}/${deviceName}`

/** Routes the topics that the protocol gives to single methods. */
const routeOwnTopic = (topic: string, owner: Owner): Route | undefined => {
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
  return topic.startsWith("/ext/rrpc/") ? routeCallReply(topic, owner) : undefined
}

/** Routes the reply to a synchronous call on the topic of the call. */
const routeCallReply = (topic: string, { deviceName, productKey }: Owner): Route | undefined => {
  const named = ownerOf(topic)
  if (named === undefined) return rrpcAnswer
  if (named.productKey !== productKey || named.deviceName !== deviceName) return undefined
  const [, , , id = "", family] = topic.split("/")
  return family === "sys" ? rrpcAnswer : { form: "user", method: userReplyMethod, replyTopic: "", repliesTo: id }
}

const notice = (method: string): Route => ({ form: "notice", method, replyTopic: "" })

/** Reports about upgrades, by the part of the topic before product key and device name. */
const upgradeRoutes: ReadonlyMap<string, Route> = new Map([
  ["/ota/device/inform/", notice("thing.ota.inform")],
  ["/ota/device/progress/", notice("thing.ota.progress")]
])

/** A reply to a synchronous call. The id in the message names the call. */
const rrpcAnswer: Route = { form: "answer", method: "thing.service.rrpc_reply", replyTopic: "" }

/** Forms that belong to topics of their own. A method of such a form is a plain request below `/sys`. */
const ownTopicForms: ReadonlySet<DeviceMethod.MessageForm> = new Set(["shadow", "time", "upgrade"])

/** Notices with topics of their own. They are plain requests below `/sys`. */
const ownTopicNotices: ReadonlySet<string> = new Set([...upgradeRoutes.values()].map(({ method }) => method))

/** `path`: the topic without the prefix. */
const routeMethod = (topic: string, path: string, formOf: FindForm): Route | undefined => {
  if (path.startsWith("rrpc/response/")) return rrpcAnswer
  const method = path === "_thing/diag/post" ? "thing.diag.post" : path.replaceAll("/", ".")
  const declared = formOf(method)
  // A device that uses an unknown method of the protocol gets a reply that says so.
  const isKnown = declared !== undefined || (method.startsWith("thing.") && !method.endsWith("_reply"))
  if (!isKnown || declared === "user") return undefined
  const form = declared === undefined || ownTopicForms.has(declared) || ownTopicNotices.has(method)
    ? "request"
    : declared
  return {
    form,
    method,
    replyTopic: form === "answer" || form === "notice" || method.endsWith("_reply") ? "" : `${topic}_reply`
  }
}
