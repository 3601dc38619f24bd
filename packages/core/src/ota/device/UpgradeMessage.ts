/**
 * The messages about upgrades between devices and the cloud. See
 * docs/protocol/upgrades.md.
 */
import { Option, Predicate, Schema } from "effect"
import type { DeviceIdentity } from "../../device/Device.ts"
import { type DeviceReply, fieldError } from "../../uplink/DeviceReply.ts"
import type { Json } from "../../kernel/Json.ts"
import type { StoredObject } from "../../object/StoredObject.ts"
import { beginning, isWellFormed } from "../../kernel/Text.ts"
import { streamFileId } from "./BlockRequest.ts"
import { defaultModule, ModuleName } from "../firmware/Firmware.ts"
import type { Assignment, DownloadProtocol } from "../task/UpgradeTask.ts"

/** The method by which the cloud tells a device of its upgrade. */
export const upgradeMethod = "thing.ota.upgrade"

/** What a device says of itself. `at`: Unix milliseconds. */
export type UpgradeReport =
  /** The version that a module runs. */
  | {
    readonly _tag: "Inform"
    readonly device: DeviceIdentity
    readonly module: string
    readonly version: string
    /** How the device wants to download firmware, if it says so. */
    readonly protocol: DownloadProtocol | undefined
    readonly at: number
  }
  /** How far an upgrade is. */
  | {
    readonly _tag: "Progress"
    readonly device: DeviceIdentity
    readonly module: string
    /** Percent, or -1: failed. */
    readonly step: number
    readonly description: string
    readonly at: number
  }

const isModule = Schema.is(ModuleName)

/** Characters. A version that a device reports need not have the form x.y.z. */
const maxVersionLength = 128
/** Characters; a longer description is cut. */
const maxDescriptionLength = 256

/** What a step below 0 means, for devices that do not describe it. */
const failureOf = (step: number): string =>
  step === -2
    ? "the download has failed"
    : step === -3
    ? "the check of the file has failed"
    : step === -4
    ? "the device could not write the file"
    : "the device gave no reason"

const fields = (params: unknown) => (Predicate.isObject(params) ? params : {}) as Readonly<Record<string, unknown>>

/** The module that a message is about, `default` unless it names one; undefined: the name is not valid. */
export const moduleOf = (params: unknown): string | undefined => {
  const { module } = fields(params)
  if (module === undefined || module === "") return defaultModule
  return isModule(module) ? module : undefined
}

/** How a device wants to download firmware, if its message says so. */
export const protocolOf = (params: unknown): DownloadProtocol | undefined => {
  switch (fields(params)["dProtocol"]) {
    case "mqtt":
      return "mqtt"
    case "http":
    case "https":
      return "https"
    default:
      return undefined
  }
}

/** Reads a message that reports a version; returns the reply that refuses it if it is not valid. */
export const inform = (device: DeviceIdentity, params: unknown, at: number): UpgradeReport | DeviceReply => {
  const module = moduleOf(params)
  const { version } = fields(params)
  if (module === undefined) return fieldError("module", "expected 1 to 64 letters, digits and _ . -")
  if (typeof version !== "string" || version === "" || version.length > maxVersionLength || !isWellFormed(version)) {
    return fieldError("version", `expected 1 to ${maxVersionLength} characters`)
  }
  return { _tag: "Inform", device, module, version, protocol: protocolOf(params), at }
}

/** Reads a message that reports progress; returns the reply that refuses it if it is not valid. */
export const progress = (device: DeviceIdentity, params: unknown, at: number): UpgradeReport | DeviceReply => {
  const module = moduleOf(params)
  const { desc = "", step } = fields(params)
  if (module === undefined) return fieldError("module", "expected 1 to 64 letters, digits and _ . -")
  const number = typeof step === "number" || (typeof step === "string" && /^-?\d{1,16}$/.test(step))
    ? Number(step)
    : NaN
  if (!Number.isInteger(number) || number > 100) {
    return fieldError("step", "expected a number up to 100, below 0: failed")
  }
  const said = typeof desc === "string" && isWellFormed(desc) ? beginning(desc, maxDescriptionLength) : ""
  const description = number < 0 && said.trim() === "" ? failureOf(number) : said
  return { _tag: "Progress", device, module, step: Math.max(-1, number), description, at }
}

/**
 * The data by which a device downloads and checks its firmware. `file`: the object
 * that it downloads over its connection; none: it wants to, but the cloud does not
 * store the file; undefined: it downloads from the address of the firmware.
 */
export const upgradeData = ({ firmware }: Assignment, file?: Option.Option<StoredObject>): Json => ({
  size: firmware.size,
  version: firmware.version,
  ...file === undefined
    ? { url: firmware.ossPath }
    : Option.match(file, {
      onNone: () => ({ dProtocol: "https", url: firmware.ossPath }),
      onSome: ({ size }) => ({ size, dProtocol: "mqtt", streamId: firmware.firmwareId, streamFileId })
    }),
  md5: firmware.hash,
  ...firmware.sha256 === ""
    ? { sign: firmware.hash, signMethod: "Md5" }
    : { sign: firmware.sha256, signMethod: "SHA256" },
  module: firmware.module,
  isDiff: 0,
  extData: firmware.signed === null ? {} : {
    signature: firmware.signed.signature,
    signatureKeyId: firmware.signed.keyId,
    signatureMethod: firmware.signed.algorithm
  }
})
