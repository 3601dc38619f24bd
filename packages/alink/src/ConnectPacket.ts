/**
 * Reads what a device says about itself in the fields of its CONNECT
 * (docs/protocol/connecting.md).
 */
import {
  type AlinkRegistration,
  type ConnectCredentials,
  DeviceName,
  ProductKey,
  SignMethod,
  Text,
  type TokenCredentials
} from "@device-cloud/core"
import { Result, Schema } from "effect"

/** The fields of CONNECT as the device sent them. */
export interface ConnectFields {
  readonly clientId: string
  readonly username: string | undefined
  readonly password: string | undefined
}

/** What a device wants with its CONNECT. */
export type ConnectIntent =
  /** It connects with a signature. */
  | { readonly _tag: "Signed"; readonly credentials: ConnectCredentials }
  /** It connects with the token that it got when it registered without being created beforehand. */
  | { readonly _tag: "Token"; readonly credentials: TokenCredentials }
  /** It knows only the secret of its product and asks for its own. */
  | { readonly _tag: "Register"; readonly unlisted: boolean; readonly request: AlinkRegistration }

/** The fields name no device. */
export class MalformedCredentials extends Schema.TaggedError<MalformedCredentials>()("MalformedCredentials", {
  reason: Schema.String
}) {}

const refuse = (reason: string) => Result.fail(new MalformedCredentials({ reason }))

const isSignMethod = Schema.is(SignMethod)

/** Accepts product keys and device names that the store could hold. */
const isName = Schema.is(Text(128))

/** Authentication types with the same signature. */
const authTypes = new Set(["1", "2", "3"])

/** Returns the device that a user name `{device_name}&{product_key}` names; undefined: none that could exist. */
export const namedDevice = (
  username: string | undefined
): { readonly productKey: ProductKey; readonly deviceName: DeviceName } | undefined => {
  const separator = username?.lastIndexOf("&") ?? -1
  if (username === undefined || separator <= 0) return undefined
  const deviceName = username.slice(0, separator)
  const productKey = username.slice(separator + 1)
  return isName(deviceName) && isName(productKey)
    ? { productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) }
    : undefined
}

/**
 * Returns what the device wants. The client id is
 * `{client_id}|signmethod={…},authType={…}|`, or a bare client id for the
 * defaults; unknown pairs are ignored. The user name is
 * `{device_name}&{product_key}`, the password is the signature. `address` is
 * where the device connects from.
 */
export const parse = (
  fields: ConnectFields,
  address: string
): Result.Result<ConnectIntent, MalformedCredentials> => {
  const { clientId, extension } = splitClientId(fields.clientId)
  const named = namedDevice(fields.username)
  if (named === undefined) {
    return refuse("user name: expected device_name&product_key, each text of at most 128 characters")
  }
  if (!fields.password) return refuse("password: expected a signature")
  const signMethod = extension.get("signmethod")?.toLowerCase() ?? "hmacsha1"
  if (!isSignMethod(signMethod)) return refuse(`signmethod: expected one of ${SignMethod.literals.join(", ")}`)
  const device = { productKey: named.productKey, deviceName: named.deviceName, address }
  const authType = extension.get("authtype") ?? "1"
  switch (authType) {
    case "register":
    case "regnwl":
      return Result.succeed({
        _tag: "Register",
        unlisted: authType === "regnwl",
        request: { random: extension.get("random") ?? "", signMethod, sign: fields.password, ...device }
      })
    case "connwl":
      return Result.succeed({ _tag: "Token", credentials: { clientId, token: fields.password, ...device } })
  }
  if (!authTypes.has(authType)) return refuse("authType: expected 1, 2, 3, register, regnwl or connwl")
  return Result.succeed({
    _tag: "Signed",
    // A spread that comes last costs little; in front of other members it costs more than all the rest here.
    credentials: {
      clientId,
      timestamp: extension.get("timestamp"),
      signMethod,
      signature: fields.password,
      ...device
    }
  })
}

/** Returns the identifier before the first `|` and the pairs after it, with their names in lower case. */
const splitClientId = (text: string) => {
  const bar = text.indexOf("|")
  if (bar < 0) return { clientId: text, extension: new Map<string, string>() }
  const pairs = text.slice(bar + 1).replace(/\|$/, "").split(",").map((pair) => {
    const equals = pair.indexOf("=")
    return equals < 0
      ? [pair.toLowerCase(), ""] as const
      : [pair.slice(0, equals).toLowerCase(), pair.slice(equals + 1)] as const
  })
  return { clientId: text.slice(0, bar), extension: new Map(pairs) }
}
