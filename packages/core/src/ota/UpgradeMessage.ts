/**
 * What devices and the cloud say about upgrades (alink-facts, section 3.16).
 */
import { Predicate, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { type DeviceReply, parameterError } from "../message/DeviceReply.ts"
import type { Json } from "../shadow/Shadow.ts"
import { isWellFormed } from "../Text.ts"
import { defaultModule, ModuleName } from "./Firmware.ts"
import type { Assignment } from "./UpgradeTask.ts"

/** The method of what tells a device that there is something for it. */
export const upgradeMethod = "thing.ota.upgrade"

/** What a device says of itself. `at`: Unix milliseconds. */
export type UpgradeReport =
  | {
    readonly _tag: "Inform"
    readonly device: DeviceIdentity
    readonly module: string
    readonly version: string
    readonly at: number
  }
  | {
    readonly _tag: "Progress"
    readonly device: DeviceIdentity
    readonly module: string
    /** -1 to 100. */
    readonly step: number
    readonly description: string
    readonly at: number
  }

const isModule = Schema.is(ModuleName)

/** Of a version that a device reports; it need not have the form of ours. */
const maxVersionLength = 128
const maxDescriptionLength = 256

const fields = (params: unknown) => (Predicate.isObject(params) ? params : {}) as Readonly<Record<string, unknown>>

/** The module that a message is about; undefined: it names none that could be one. */
export const moduleOf = (params: unknown): string | undefined => {
  const { module = defaultModule } = fields(params)
  return isModule(module) ? module : undefined
}

export const inform = (device: DeviceIdentity, params: unknown, at: number): UpgradeReport | DeviceReply => {
  const module = moduleOf(params)
  const { version } = fields(params)
  if (module === undefined) return parameterError("module: expected 1 to 64 letters, digits and _ . -")
  if (typeof version !== "string" || version === "" || version.length > maxVersionLength || !isWellFormed(version)) {
    return parameterError(`version: expected 1 to ${maxVersionLength} characters`)
  }
  return { _tag: "Inform", device, module, version, at }
}

export const progress = (device: DeviceIdentity, params: unknown, at: number): UpgradeReport | DeviceReply => {
  const module = moduleOf(params)
  const { desc = "", step } = fields(params)
  if (module === undefined) return parameterError("module: expected 1 to 64 letters, digits and _ . -")
  const number = typeof step === "number" || (typeof step === "string" && /^-?\d{1,4}$/.test(step)) ? Number(step) : NaN
  if (!Number.isInteger(number) || number > 100) {
    return parameterError("step: expected a number up to 100, below 0: failed")
  }
  const description = typeof desc === "string" && isWellFormed(desc) ? desc.slice(0, maxDescriptionLength) : ""
  return { _tag: "Progress", device, module, step: Math.max(-1, number), description, at }
}

/** What a device needs to upgrade itself. */
export const upgradeData = ({ firmware }: Assignment): Json => ({
  size: firmware.size,
  version: firmware.version,
  url: firmware.ossPath,
  md5: firmware.hash,
  sign: firmware.hash,
  signMethod: "Md5",
  module: firmware.module,
  isDiff: 0,
  extData: {}
})
