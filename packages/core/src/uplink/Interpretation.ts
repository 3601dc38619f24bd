/**
 * What a device's message asks of the cloud, by its method (alink-facts,
 * section 3).
 */
import { Option, Predicate } from "effect"
import { readBindReport } from "../provisioning/Binding.ts"
import { type CommandProgress, userMethod } from "../command/Command.ts"
import { type MeshRequest, readMeshRequest } from "../mesh/MeshMessage.ts"
import { inform, moduleOf, progress, protocolOf, type UpgradeReport } from "../ota/device/UpgradeMessage.ts"
import type { DownloadProtocol } from "../ota/task/UpgradeTask.ts"
import { isFiniteJson, type Json } from "../kernel/Json.ts"
import { shadowMessage } from "../shadow/ShadowMessage.ts"
import { isWellFormed } from "../kernel/Text.ts"
import { type TopologyRequest, topologyRequest } from "../gateway/TopologyMessage.ts"
import { desiredDelete, desiredGet } from "./DesiredProperties.ts"
import { networkTime } from "./NetworkTime.ts"
import { type DeviceReply, noConfiguration, parameterError, success, topicError } from "./DeviceReply.ts"
import type { Step } from "./DeviceState.ts"
import {
  batchPost,
  type DeviceChange,
  diagnosisPost,
  eventPost,
  type FindSubDevice,
  historyPost,
  logPost,
  modbusPost,
  packPost,
  propertyPost,
  rawPost,
  userPost
} from "./PropertyMessages.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

/** What is done outside of the device's shadow and history, after the batch, in order. */
export type Errand =
  | { readonly _tag: "SetTags"; readonly tags: Readonly<Record<string, string>> }
  | { readonly _tag: "RemoveTags"; readonly keys: ReadonlyArray<string> }
  | { readonly _tag: "ReadTags" }
  | { readonly _tag: "ReadModel" }
  | { readonly _tag: "ReadLogSwitch" }
  | { readonly _tag: "Topology"; readonly request: TopologyRequest }
  | {
    readonly _tag: "FetchFirmware"
    readonly module: string
    readonly protocol: DownloadProtocol | undefined
  }
  | { readonly _tag: "ReportRandom"; readonly random: string; readonly at: number }
  | { readonly _tag: "AskMesh"; readonly request: MeshRequest }

export type Interpretation =
  | { readonly _tag: "Answer"; readonly reply: DeviceReply }
  | { readonly _tag: "Change"; readonly step: Step }
  /** Of the gateway and its sub-devices. */
  | { readonly _tag: "Changes"; readonly changes: ReadonlyArray<DeviceChange> }
  | { readonly _tag: "Outcome"; readonly progress: CommandProgress }
  | { readonly _tag: "Upgrade"; readonly report: UpgradeReport }
  | { readonly _tag: "Errand"; readonly errand: Errand }

const answer = (reply: DeviceReply): Interpretation => ({ _tag: "Answer", reply })
const errand = (errand: Errand): Interpretation => ({ _tag: "Errand", errand })
const change = (step: Step | DeviceReply): Interpretation =>
  typeof step === "function" ? { _tag: "Change", step } : answer(step)

const changes = (changes: ReadonlyArray<DeviceChange> | DeviceReply): Interpretation =>
  "code" in changes ? answer(changes) : { _tag: "Changes", changes }

const upgrade = (report: UpgradeReport | DeviceReply): Interpretation =>
  "_tag" in report ? { _tag: "Upgrade", report } : answer(report)

const eventMethod = /^thing\.event\.([^.]+)\.post$/
const serviceReplyMethod = /^thing\.service\..+_reply$/

/** `subDevices` finds those that the message names. */
export const interpret = (message: UplinkMessage, subDevices: FindSubDevice): Interpretation => {
  const { device, method, params, receivedAt } = message
  switch (method) {
    case "thing.event.property.post":
      return change(propertyPost(params, receivedAt))
    case "thing.event.property.batch.post":
      return change(batchPost(params, receivedAt))
    case "thing.event.property.pack.post":
      return changes(packPost(device, params, receivedAt, subDevices))
    case "thing.event.property.history.post":
      return changes(historyPost(device, params, receivedAt, subDevices))
    case "thing.property.desired.get":
      return change(desiredGet(params))
    case "thing.property.desired.delete":
      return change(desiredDelete(params, receivedAt))
    case "thing.shadow":
      return change(shadowMessage(params, receivedAt))
    case "thing.model.up_raw":
      return change(rawPost(params, receivedAt))
    case "thing.log.post":
      return change(logPost(params, receivedAt))
    case "thing.diag.post":
      return change(diagnosisPost(params, receivedAt))
    case "thing.deviceinfo.update":
      return tagsUpdate(params)
    case "thing.deviceinfo.delete":
      return tagsDelete(params)
    case "thing.deviceinfo.get":
      return errand({ _tag: "ReadTags" })
    case "thing.dsltemplate.get":
    case "thing.dynamicTsl.get":
      return errand({ _tag: "ReadModel" })
    case "thing.modbus.post":
      return change(modbusPost(params, receivedAt))
    case "thing.ntp":
      return answer(success(networkTime(params, receivedAt, receivedAt)))
    case "thing.ota.inform":
      return upgrade(inform(message.device, params, receivedAt))
    case "thing.ota.progress":
      return upgrade(progress(message.device, params, receivedAt))
    case "thing.ota.firmware.get": {
      const module = moduleOf(params)
      return module === undefined
        ? answer(parameterError("module: expected 1 to 64 letters, digits and _ . -"))
        : errand({ _tag: "FetchFirmware", module, protocol: protocolOf(params) })
    }
    case "thing.bind.post":
      return Option.match(readBindReport(params), {
        onNone: () => answer(parameterError("random: expected 8 to 32 characters")),
        onSome: ({ random }) => errand({ _tag: "ReportRandom", random, at: receivedAt })
      })
    case "thing.mesh.add":
    case "thing.mesh.delete":
    case "thing.mesh.get": {
      const request = readMeshRequest[method](params)
      return "code" in request ? answer(request) : errand({ _tag: "AskMesh", request })
    }
    // It says only that the bytes have arrived.
    case "thing.mesh.raw_reply":
      return answer(success({}))
    case userMethod:
      return change(userPost(params, receivedAt))
    case "thing.config.get":
      return answer(noConfiguration)
    case "thing.config.log.get":
      return errand({ _tag: "ReadLogSwitch" })
  }
  const request = topologyRequest(method, params)
  if (request !== undefined) return "code" in request ? answer(request) : errand({ _tag: "Topology", request })
  const eventId = eventMethod.exec(method)?.[1]
  if (eventId !== undefined) return change(eventPost(eventId, params, receivedAt))
  return serviceReplyMethod.test(method) ? serviceReply(message) : answer(topicError)
}

/** The device's answer to a command, which it names by its id. */
const serviceReply = ({ device, params, receivedAt }: UplinkMessage): Interpretation => {
  const { code, data = {}, id, message = "" } = (Predicate.isObject(params) ? params : {}) as Readonly<
    Record<string, Json>
  >
  // Whatever else it may be is never made a number or text of.
  const messageId = typeof id === "string" || typeof id === "number" ? Number(id) : 0
  const outcome = typeof code === "number" ? Math.trunc(code) : Number.NaN
  if (!Number.isSafeInteger(messageId) || messageId <= 0 || !Number.isSafeInteger(outcome)) {
    return answer(parameterError("expected the id of a command and a code"))
  }
  return {
    _tag: "Outcome",
    progress: {
      deviceId: device.deviceId,
      messageId,
      state: code === 200 ? "succeeded" : "failed",
      code: outcome,
      message: toWellFormed(typeof message === "string" ? message : ""),
      data: isFiniteJson(data, maxDataNesting) ? data : {},
      at: receivedAt
    }
  }
}

/** Of what a device answers to a command; what is nested deeper is not kept. */
const maxDataNesting = 32
/** Of what a device says about the end of a command. */
const maxMessageLength = 1024

const toWellFormed = (text: string): string => isWellFormed(text) ? text.slice(0, maxMessageLength) : ""

const maxTagsInMessage = 200
const tagKey = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/
/** In UTF-16 code units. */
export const maxTagLength = 128

const attributes = (params: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> | undefined =>
  Array.isArray(params) && params.length > 0 && params.length <= maxTagsInMessage && params.every(Predicate.isObject)
    ? params as ReadonlyArray<Readonly<Record<string, unknown>>>
    : undefined

const tagsUpdate = (params: unknown): Interpretation => {
  const items = attributes(params)
  if (items === undefined) {
    return answer(parameterError(`params: expected an array of 1 to ${maxTagsInMessage} {attrKey, attrValue}`))
  }
  const tags: Array<[string, string]> = []
  for (const { attrKey, attrValue } of items) {
    if (typeof attrKey !== "string" || !tagKey.test(attrKey)) {
      return answer(parameterError("attrKey: expected 1 to 100 letters, digits and _, no digit first"))
    }
    if (typeof attrValue !== "string" || attrValue.length > maxTagLength || !isWellFormed(attrValue)) {
      return answer(parameterError(`attrValue: expected text of at most ${maxTagLength} characters`))
    }
    tags.push([attrKey, attrValue])
  }
  return errand({ _tag: "SetTags", tags: Object.fromEntries(tags) })
}

const isStorableText = (value: unknown): value is string => typeof value === "string" && isWellFormed(value)

const tagsDelete = (params: unknown): Interpretation => {
  const keys = attributes(params)?.map(({ attrKey }) => attrKey)
  return keys === undefined || !keys.every(isStorableText)
    ? answer(parameterError(`params: expected an array of 1 to ${maxTagsInMessage} {attrKey}`))
    : errand({ _tag: "RemoveTags", keys })
}
