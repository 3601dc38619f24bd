/**
 * A device that speaks HTTP.
 */
import { Mac, type SignMethod, uplinkText } from "@device-cloud/core"
import { Effect } from "effect"
import { call, type CallOptions } from "./TestApi.ts"

/** The signature of a text, in lower-case hexadecimal digits. */
export const sign = (method: SignMethod, secret: string, text: string) =>
  Effect.map(Mac, (mac) => mac.sign(method, secret, text))

/** Who a device is, and the secret by which it proves so, by their names on the wire. */
export interface DeviceTriple {
  readonly product_key: string
  readonly device_name: string
  readonly device_secret: string
}

/**
 * The query of an uplink call, signed. `extra` adds parameters and replaces
 * defaults: random `12345678`, sign method `hmacsha256`.
 */
export const signedQuery = Effect.fnUntraced(function*(
  device: DeviceTriple,
  action: string,
  extra: Readonly<Record<string, string>> = {}
) {
  const { random = "12345678", sign_method = "hmacsha256", ...rest } = extra
  const { device_name, device_secret, product_key } = device
  const text = uplinkText({
    productKey: product_key,
    deviceName: device_name,
    random,
    timestamp: rest["timestamp"],
    contentSha256: rest["content_sha256"]
  })
  const signature = yield* sign(sign_method as SignMethod, device_secret, text)
  return { device_name, product_key, sign_method, random, sign: signature, action, ...rest }
})

/** Sends an action as the device: `POST /thing-uplink`. `options.query` is the `extra` of {@link signedQuery}. */
export const uplink = Effect.fnUntraced(function*(
  device: DeviceTriple,
  action: string,
  options: CallOptions & { readonly query?: Readonly<Record<string, string>> } = {}
) {
  const query = new URLSearchParams(yield* signedQuery(device, action, options.query)).toString()
  return yield* call("POST", `/thing-uplink?${query}`, { key: null, ...options })
})
