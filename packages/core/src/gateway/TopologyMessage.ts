/**
 * Decodes what gateways say about their sub-devices (docs/protocol/gateways.md).
 */
import { Predicate, Result } from "effect"
import { DeviceName } from "../device/Device.ts"
import { type DeviceReply, failure, fieldError } from "../uplink/DeviceReply.ts"
import { ProductKey } from "../product/Product.ts"
import { SignMethod } from "../kernel/Mac.ts"
import { isWellFormed } from "../kernel/Text.ts"
import { fieldsText } from "../provisioning/Signature.ts"
import type { SubDeviceName } from "../uplink/SubDeviceDirectory.ts"

/** Sub-devices in one message about the topology. */
const maxPerMessage = 30
/** Sub-devices in one message that registers them, logs them in or logs them out. */
const maxPerBatch = 50

/** The signature of a sub-device, as its gateway hands it over. */
export interface SubDeviceProof extends SubDeviceName {
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly sign: string
  /** The members of the message that may have been signed, by their names. */
  readonly fields: Readonly<Record<string, string>>
}

/** A sub-device that its gateway registers, with a signature under the secret of its product. */
export interface ProxiedRegistration extends SubDeviceName {
  readonly random: string
  readonly signMethod: SignMethod
  readonly sign: string
}

/** A request about sessions of sub-devices. `isBatch`: the reply holds a list. */
export type SessionRequest =
  | { readonly _tag: "Login"; readonly proofs: ReadonlyArray<SubDeviceProof>; readonly isBatch: boolean }
  | { readonly _tag: "Logout"; readonly names: ReadonlyArray<SubDeviceName>; readonly isBatch: boolean }

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => Predicate.isObject(value)

const isName = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= 128 && isWellFormed(value)

const nameOf = ({ deviceName, productKey }: Members): SubDeviceName | DeviceReply => {
  if (!isName(productKey)) return fieldError("productKey", "expected the sub-device's product key")
  if (!isName(deviceName)) return fieldError("deviceName", "expected the sub-device's name")
  return { productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) }
}

const signMethods: Readonly<Record<string, SignMethod>> = {
  ...Object.fromEntries(SignMethod.literals.map((method) => [method, method])),
  sha256: "hmacsha256"
}

/**
 * Devices write `signMethod` or `signmethod`, with letters of either case. That of
 * the batch counts for items without.
 */
const signMethodOf = (item: Members, batch: Members): SignMethod | undefined => {
  const named = item["signMethod"] ?? item["signmethod"] ?? batch["signMethod"] ?? batch["signmethod"] ?? "hmacsha1"
  const known = typeof named === "string" ? named.toLowerCase() : ""
  return Object.hasOwn(signMethods, known) ? signMethods[known] : undefined
}

const notSigned: ReadonlySet<string> = new Set(["sign", "signMethod", "signmethod"])

/** Members whose values are fixed, or judged. */
const knownMembers: ReadonlySet<string> = new Set([
  "productKey",
  "deviceName",
  "clientId",
  "cleanSession",
  "timestamp",
  "gatewayProductKey",
  "gatewayDeviceName"
])

/**
 * Returns the member that stands in the signed text under other names: the text
 * has no separators, so `timestamp1795` may also be written as a member
 * `timestamp1` of the value `795`, and would not be judged.
 */
const hiddenMember = (fields: Readonly<Record<string, string>>): string | undefined => {
  const others = Object.entries(fields).filter(([name]) => !knownMembers.has(name))
  if (others.length === 0) return undefined
  const text = fieldsText(Object.fromEntries(others))
  return ["timestamp", "gatewayProductKey", "gatewayDeviceName"].find((name) => text.includes(name))
}

const proofOf = (members: Members, batch: Members = members): SubDeviceProof | DeviceReply => {
  const name = nameOf(members)
  if ("code" in name) return name
  const signMethod = signMethodOf(members, batch)
  if (signMethod === undefined) {
    return fieldError("signMethod", "expected hmacSha1, hmacSha256, hmacMd5, Sha256 or aescmac")
  }
  const { sign } = members
  if (typeof sign !== "string") return fieldError("sign", "expected a signature in hex")
  const fields: Record<string, string> = {}
  for (const [key, value] of Object.entries(members)) {
    if (notSigned.has(key)) continue
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
      return fieldError(key.slice(0, 64), "expected text or a number")
    }
    fields[key] = String(value)
  }
  const hidden = hiddenMember(fields)
  if (hidden !== undefined) return fieldError(hidden, "expected a member of its own in the signed text")
  return { ...name, signMethod, sign, fields }
}

/** Reads each item; returns the refusal of the first that cannot be read. */
const all = <A extends object>(
  items: ReadonlyArray<unknown>,
  read: (item: Members) => A | DeviceReply,
  field = "params"
): ReadonlyArray<A> | DeviceReply => {
  const result: Array<A> = []
  for (const item of items) {
    const one = isMembers(item)
      ? read(item)
      : fieldError(field, "expected productKey and deviceName of each sub-device")
    if ("code" in one) return one
    result.push(one)
  }
  return result
}

/** Returns the value if it is an array of 1 to `maximum` items. */
const listOf = (value: unknown, maximum: number): ReadonlyArray<unknown> | undefined =>
  Array.isArray(value) && value.length > 0 && value.length <= maximum ? value : undefined

/** Reads an array of 1 to `maximum` items. */
const lists = <A extends object>(
  value: unknown,
  maximum: number,
  read: (item: Members) => A | DeviceReply,
  field = "params"
): ReadonlyArray<A> | DeviceReply => {
  const items = listOf(value, maximum)
  return items === undefined ? fieldError(field, `expected an array of 1 to ${maximum}`) : all(items, read, field)
}

const withList = <A, B>(items: ReadonlyArray<A> | DeviceReply, make: (items: ReadonlyArray<A>) => B): B | DeviceReply =>
  "code" in items ? items : make(items)

const foundName = /^[A-Za-z0-9\-_@.:]{4,32}$/

const asResult = <A extends object>(
  items: ReadonlyArray<A> | DeviceReply
): Result.Result<ReadonlyArray<A>, DeviceReply> => "code" in items ? Result.fail(items) : Result.succeed(items)

/** Reads the signatures of sub-devices that join the gateway. */
export const readProofs = (params: unknown) => asResult(lists(params, maxPerMessage, (item) => proofOf(item)))

/** Reads the names of sub-devices that leave the gateway. */
export const readNames = (params: unknown) => asResult(lists(params, maxPerMessage, nameOf))

/** Reads the names of sub-devices that the gateway registers or unregisters. */
export const readRegistered = (params: unknown) => asResult(lists(params, maxPerBatch, nameOf))

/** Reads the names of devices that the gateway has found. */
export const readFound = (params: unknown) =>
  asResult(lists(params, maxPerBatch, (item) => {
    const name = nameOf(item)
    return "code" in name || foundName.test(name.deviceName) ? name : badName
  }))

/** Reads the registrations in `proxieds`. */
export const readProxied = (params: unknown) =>
  asResult(lists(isMembers(params) ? params["proxieds"] : undefined, maxPerBatch, registrationOf, "params.proxieds"))

const badName: DeviceReply = failure(6280, "devicename not meet specs: 4 to 32 letters, digits and - _ @ . :")

const registrationOf = (item: Members): ProxiedRegistration | DeviceReply => {
  const proof = proofOf(item)
  if ("code" in proof) return proof
  const { deviceName, fields: { random = "" }, productKey, sign, signMethod } = proof
  return { deviceName, productKey, random, sign, signMethod }
}

/** Reads a message about sessions of sub-devices; undefined: no such method exists. */
export const sessionRequest = (method: string, params: unknown): SessionRequest | DeviceReply | undefined => {
  switch (method) {
    case "combine.login":
      return withList(all([params], (item) => proofOf(item)), (proofs) => ({ _tag: "Login", proofs, isBatch: false }))
    case "combine.batch_login": {
      const batch = isMembers(params) ? params : {}
      return withList(
        lists(batch["deviceList"], maxPerBatch, (item) => proofOf(item, batch), "params.deviceList"),
        (proofs) => ({ _tag: "Login", proofs, isBatch: true })
      )
    }
    case "combine.logout":
      return withList(all([params], nameOf), (names) => ({ _tag: "Logout", names, isBatch: false }))
    case "combine.batch_logout":
      return withList(lists(params, maxPerBatch, nameOf), (names) => ({ _tag: "Logout", names, isBatch: true }))
  }
  return undefined
}
