/**
 * The link of a device over HTTP: each message is a signed request. Commands come
 * with the reply to the next message (docs/protocol/http-uplink.md).
 */
import { DeviceReply, type DownlinkMessage, type Json, Mac, type StoreError, uplinkText } from "@device-cloud/core"
import { Clock, Deferred, Effect, Random, type Scope } from "effect"
import {
  addressAt,
  checkUrl,
  type DeviceLink,
  type DeviceMessage,
  type DeviceTriple,
  LinkError,
  type OpenLink
} from "./DeviceLink.ts"
import { fetchBytes } from "./Download.ts"

/** Where a device sends its messages. */
export interface HttpOptions {
  /** The address of the server, for example `https://cloud.example.com`. */
  readonly url: string
}

/** An envelope of the API, as a device reads it. */
interface Envelope {
  readonly code: number
  readonly message: string
  readonly data?: { readonly device_code?: number } & Readonly<Record<string, Json>>
  readonly data_pending?: ReadonlyArray<DownlinkMessage>
}

/** Returns how the device sends its messages. There is no connection: it is online for five minutes after each one. */
export const overHttp = (device: DeviceTriple, { url }: HttpOptions): OpenLink<never, Mac> =>
  Effect.fnUntraced(function*(receive): Effect.fn.Return<DeviceLink, never, Mac | Scope.Scope> {
    checkUrl(url, ["https", "http"])
    const mac = yield* Mac
    const closed = yield* Deferred.make<"lost">()
    let isOpen = true
    const close = Effect.sync(() => {
      isOpen = false
      Deferred.doneUnsafe(closed, Effect.succeed("lost"))
    })
    yield* Effect.addFinalizer(() => close)
    const send = Effect.fnUntraced(
      function*(message: DeviceMessage): Effect.fn.Return<DeviceReply.DeviceReply, StoreError | LinkError> {
        const request = requestOf(message)
        if (request === undefined) return DeviceReply.topicError
        if (!isOpen) return yield* new LinkError({ reason: "The link has ended" })
        const { body, ...action } = request
        const { deviceName, deviceSecret, productKey } = device
        const timestamp = String(yield* Clock.currentTimeMillis)
        const random = String(yield* Random.nextIntBetween(1e9, 2 ** 52))
        const text = uplinkText({ productKey, deviceName, random, timestamp })
        const query = new URLSearchParams({
          product_key: productKey,
          device_name: deviceName,
          sign_method: "hmacsha256",
          random,
          timestamp,
          sign: mac.sign("hmacsha256", deviceSecret, text),
          pull: "1",
          ...action
        })
        const { code, data, data_pending = [], message: said } = yield* post(
          addressAt(url, `/openapi/v1/thing-uplink?${query}`),
          body
        )
        // A command that was not answered comes with the next reply, too: there is nothing to confirm.
        for (const message of data_pending) yield* receive({ to: device, message, acknowledge: () => {} })
        return code === 0
          ? DeviceReply.success(data ?? {})
          : { ...DeviceReply.failure(data?.device_code ?? code, said), data: data ?? {} }
      }
    )
    return {
      send,
      download: fetchBytes,
      cut: Effect.sync(() => void (isOpen = false)),
      closed: Deferred.await(closed),
      close
    }
  })

const post = (url: string, body: Json): Effect.Effect<Envelope, LinkError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const headers = { "content-type": "application/json" }
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal })
      return await response.json() as Envelope
    },
    catch: (error) => new LinkError({ reason: error instanceof Error ? error.message : String(error) })
  })

interface Request {
  readonly action: string
  readonly event_id?: string
  readonly service_id?: string
  readonly method?: string
  readonly body: Json
}

const topologyMethod = /^(?:combine|thing\.topo|thing\.mesh)\.(\w+)$/
const eventMethod = /^thing\.event\.([^.]+)\.post$/
const serviceMethod = /^thing\.service\.(.+)_reply$/

/** Returns the action that carries a message; undefined: none does. */
const requestOf = ({ method, params }: DeviceMessage): Request | undefined => {
  const inParams: Json = { params }
  const named: Json = { method, params }
  switch (method) {
    case "thing.event.property.post":
      return { action: "PostProperty", body: inParams }
    case "thing.shadow":
      return { action: "PostShadow", body: params }
    case "thing.ntp":
      return { action: "PostNTP", body: params }
    case "thing.diag.post":
      return { action: "PostRemoteDiagnosis", body: inParams }
    case "thing.model.up_raw":
    case "thing.model.down_raw_reply":
      return { action: "PostHex", body: { method, params: { data: params } } }
    case "thing.deviceinfo.update":
    case "thing.deviceinfo.delete":
    case "thing.config.get":
    case "thing.log.post":
    case "thing.bind.post":
      return { action: "PostSysMsg", body: named }
  }
  const [, topology] = topologyMethod.exec(method) ?? []
  if (topology !== undefined) {
    return {
      action: method.startsWith("thing.mesh.") ? "PostMeshTopo" : "PostStarTopo",
      method: topology,
      body: inParams
    }
  }
  const [, event] = eventMethod.exec(method) ?? []
  if (event !== undefined) return { action: "PostEvent", event_id: event, body: inParams }
  const [, service] = serviceMethod.exec(method) ?? []
  if (service !== undefined) return { action: "PostServiceReply", service_id: service.replace(".", "/"), body: params }
  return method.startsWith("thing.ota.") ? { action: "PostOTA", body: named } : undefined
}
