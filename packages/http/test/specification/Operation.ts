/**
 * An endpoint of the specification, and how devices sign what they send to it.
 */
import { createHmac } from "node:crypto"
import { type Fields } from "./Fields.ts"

/** What the paths, bodies and queries below name. */
export interface Given {
  readonly product_key: string
  readonly product_secret: string
  /** Of a product without devices. */
  readonly empty_product_key: string
  /** Of a product whose devices reach the cloud through another one. */
  readonly cloud_gateway_product_key: string
  readonly source_product_key: string
  readonly device_id: string
  readonly device_name: string
  readonly device_secret: string
  readonly batch_id: number
  readonly service_id: string
  readonly gateway_id: string
  readonly gateway_product_key: string
  readonly gateway_name: string
  readonly gateway_secret: string
  /** An add-session of the gateway. */
  readonly session_id: string
  readonly sub_product_key: string
  /** That belongs to the gateway, and one that does not. */
  readonly sub_name: string
  readonly free_sub_name: string
  readonly free_sub_secret: string
  /** Of a call that waits for the device. */
  readonly message_id: string
  /** That the device is to be upgraded to, by a task. */
  readonly firmware_id: number
  readonly task_id: number
  /** That nothing happens to. */
  readonly idle_firmware_id: number
  /** A task that awaits its confirmation. */
  readonly confirmable_task_id: number
  readonly verified_firmware_id: number
  readonly verify_task_id: number
  /** Of a network that the gateway is a node of. */
  readonly network_key: string
  /** Of a network without nodes. */
  readonly empty_network_key: string
  readonly scene_id: string
}

export interface Input {
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
  /** A form with this in its field `file`. */
  readonly file?: string
}

export interface Operation {
  readonly method: string
  readonly path: string
  readonly query?: Fields
  readonly body?: Fields
  /** Paths in query and body. */
  readonly required?: ReadonlyArray<string>
  /** Calls that succeed. The path names something else for them where `on` says so. */
  readonly calls?: (given: Given) => ReadonlyArray<Input>
  readonly on?: Readonly<Record<string, keyof Given>>
  /** What is connected while it is called. */
  readonly connected?: "device_id" | "gateway_id"
  /** It takes from others what they need. So does each DELETE. */
  readonly spoils?: boolean
  /** Adds the signature of a device, which has no access key. */
  readonly sign?: (given: Given, input: Input) => Input
  /** Absent: envelope only. */
  readonly data?: Fields | "list"
  /** More that is refused: a change of the first call, and the field that is named. */
  readonly refuses?: ReadonlyArray<readonly [Readonly<Record<string, unknown>>, string]>
}

export const hmac = (signMethod: unknown, secret: string, text: string) =>
  createHmac(String(signMethod).replace("hmac", ""), secret).update(text).digest("hex")

const isHmac = (signMethod: unknown) => /^hmac(?:md5|sha1|sha256)$/.test(String(signMethod))

/** Signs a registration. The text begins with the field that names the device. */
export const signRegistration =
  (label: string, field: string) => ({ product_secret }: Given, { body = {} }: Input): Input => {
    const text = `${label}${body[field]}productKey${body["product_key"]}random${body["random"]}`
    return {
      body: { sign: isHmac(body["sign_method"]) ? hmac(body["sign_method"], product_secret, text) : "", ...body }
    }
  }

export const signUplink = (given: Given, { query = {}, ...input }: Input): Input => {
  const { device_name, product_key, random, sign_method } = query
  const secret = device_name === given.gateway_name ? given.gateway_secret : given.device_secret
  const text = `productKey${product_key}deviceName${device_name}random${random}`
  return { ...input, query: { sign: isHmac(sign_method) ? hmac(sign_method, secret, text) : "", ...query } }
}
