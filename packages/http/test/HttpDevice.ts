/**
 * A device that speaks HTTP.
 */
import { Mac, type SignMethod } from "@device-cloud/core"
import { Effect } from "effect"
import { call, type CallOptions } from "./TestApi.ts"

export const sign = (method: SignMethod, secret: string, text: string) =>
  Effect.map(Mac, (mac) => mac.sign(method, secret, text))

export interface Triple {
  readonly product_key: string
  readonly device_name: string
  readonly device_secret: string
}

/** The query of an uplink call, signed. */
export const signedQuery = Effect.fnUntraced(function*(
  device: Triple,
  action: string,
  extra: Readonly<Record<string, string>> = {}
) {
  const { random = "12345678", sign_method = "hmacsha256", ...rest } = extra
  const { device_name, device_secret, product_key } = device
  const text = `productKey${product_key}deviceName${device_name}random${random}`
  const signature = yield* sign(sign_method as SignMethod, device_secret, text)
  return { device_name, product_key, sign_method, random, sign: signature, action, ...rest }
})

export const uplink = Effect.fnUntraced(function*(
  device: Triple,
  action: string,
  options: CallOptions & { readonly query?: Readonly<Record<string, string>> } = {}
) {
  const query = new URLSearchParams(yield* signedQuery(device, action, options.query)).toString()
  return yield* call("POST", `/thing-uplink?${query}`, { key: null, ...options })
})
