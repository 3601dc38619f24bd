/**
 * What the routes do that devices call.
 */
import {
  Commands,
  DeviceAuthenticator,
  DeviceLink,
  type DeviceReply,
  Provisioning,
  ReplayGuard,
  SubDeviceSessions,
  type Triple,
  Uplink
} from "@device-cloud/core"
import { Clock, Effect, Option } from "effect"
import { Hex } from "effect/encoding"
import { HttpServerRequest } from "effect/http"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { addressOf } from "../EveryAnswer.ts"
import { RateLimits } from "../RateLimits.ts"
import { Code, failure, failWith } from "../Failure.ts"
import { group } from "../HandlerGroup.ts"
import { fromWire } from "../Wire.ts"
import type { UplinkQuery } from "./DeviceAccessApi.ts"
import { deviceFailure } from "./DeviceFailure.ts"
import * as UplinkAction from "./UplinkAction.ts"

/** What a message of a device may have, bytes, as on MQTT. */
const maxBodySize = 256 * 1024

const tripleData = ({ deviceName, deviceSecret, productKey }: Triple) => ({
  product_key: productKey,
  device_name: deviceName,
  device_secret: deviceSecret
})

const address = Effect.map(HttpServerRequest.HttpServerRequest, addressOf)

const unreadable = () => failure(Code.bodyUnreadable, "The body cannot be read")

/** Reads the body, in the form that its media type says. */
const readRequest = Effect.fnUntraced(function*(query: UplinkQuery) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const [mediaType = ""] = (request.headers["content-type"] ?? "").split(";")
  const isHexAction = query.action === "PostHex" || query.action === "PostSubHex"
  if (Number(request.headers["content-length"] ?? 0) > maxBodySize) {
    return yield* Effect.fail(failure(Code.tooLarge, `The body is larger than ${maxBodySize} bytes`))
  }
  if (isHexAction && mediaType.trim().toLowerCase() === "application/octet-stream") {
    const bytes = new Uint8Array(yield* Effect.mapError(request.arrayBuffer, unreadable))
    return yield* Effect.fromResult(UplinkAction.parseHex(query, Hex.encode(bytes)))
  }
  const text = yield* Effect.mapError(request.text, unreadable)
  if (text.length > maxBodySize) {
    return yield* Effect.fail(failure(Code.tooLarge, `The body is larger than ${maxBodySize} bytes`))
  }
  if (isHexAction && mediaType.trim().toLowerCase() === "text/plain") {
    return yield* Effect.fromResult(UplinkAction.parseHex(query, text))
  }
  const body = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () => failure(Code.bodyUnreadable, "The body is not valid JSON")
  })
  return yield* Effect.fromResult(UplinkAction.parse(query, body))
})

export const layer = group(
  Api,
  "device-access",
  Effect.fnUntraced(function*(handlers) {
    const provisioning = yield* Provisioning
    const authenticator = yield* DeviceAuthenticator
    const link = yield* DeviceLink
    const uplink = yield* Uplink
    const sessions = yield* SubDeviceSessions
    const commands = yield* Commands
    const limits = yield* RateLimits
    const replays = yield* Effect.serviceOption(ReplayGuard)

    const send = Effect.fnUntraced(function*(query: UplinkQuery) {
      const ip = yield* address
      const { device_name: deviceName, product_key: productKey, random, sign, sign_method: signMethod } = query
      const device = yield* authenticator.authenticateUplink({
        productKey,
        deviceName,
        address: ip,
        random,
        signMethod,
        signature: UplinkAction.signatureHex(sign, signMethod)
      }).pipe(Effect.catch(failWith))
      if (limits.isOn("device")) yield* limits.check("device", device.deviceId)
      const { method, params, subDevice } = yield* readRequest(query)
      if (Option.isSome(replays)) yield* replays.value.use(device, random).pipe(Effect.catch(failWith))
      yield* link.sight(device, ip).pipe(Effect.catch(failWith))
      const receivedAt = yield* Clock.currentTimeMillis
      const reply: DeviceReply.DeviceReply = method.startsWith("combine.")
        ? yield* sessions.answer(device, link.session(device.deviceId), ip, method, params)
        : yield* uplink.submit({
          device,
          method,
          params,
          receivedAt,
          ...subDevice === undefined ? {} : { subDevice }
        }).pipe(Effect.catch(failWith))
      if (reply.code !== 200) return yield* Effect.fail(deviceFailure(reply, method))
      const answer = { code: 0, message: "success", data: reply.data } as const
      if (query.pull !== "1") return answer
      const waiting = yield* commands.pull(device).pipe(Effect.catch(failWith))
      return { ...answer, data_pending: waiting.map((message) => ({ ...message, version: "1.0.0" })) }
    })

    return handlers
      .handle(
        "registerDevice",
        ({ payload }) =>
          Effect.flatMap(address, (ip) => respond(provisioning.register(fromWire(payload), ip), tripleData))
      )
      .handle(
        "generateDevice",
        ({ payload }) =>
          Effect.flatMap(address, (ip) => respond(provisioning.generate(fromWire(payload), ip), tripleData))
      )
      .handleRaw("uplink", ({ query }) => send(query))
  })
)
