/**
 * Handlers of the routes that devices call.
 */
import {
  Commands,
  DeviceAuthenticator,
  type DeviceReply,
  DeviceSessions,
  Provisioning,
  ReplayGuard,
  SubDeviceSessions,
  type Triple,
  Uplink
} from "@device-cloud/core"
import { Clock, Effect, Option, Result } from "effect"
import { Hex } from "effect/encoding"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { clientAddress } from "../middleware/ClientAddress.ts"
import { RateLimits } from "../middleware/RateLimits.ts"
import { failWith } from "../DomainFailures.ts"
import { BodyUnreadable, type InvalidParameter, TooLarge } from "../Failure.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { UplinkQuery } from "./DeviceAccessApi.ts"
import * as UplinkAction from "./UplinkAction.ts"
import { uplinkRefusal } from "./UplinkRefusals.ts"

/** Implements the group `device-access`. */
export const layer = group(
  Api,
  "device-access",
  Effect.fnUntraced(function*(handlers) {
    const provisioning = yield* Provisioning
    const authenticator = yield* DeviceAuthenticator
    const sessions = yield* DeviceSessions
    const uplink = yield* Uplink
    const subDevices = yield* SubDeviceSessions
    const commands = yield* Commands
    const limits = yield* RateLimits
    const replays = yield* Effect.serviceOption(ReplayGuard)
    const clock = yield* Clock.Clock
    const findAction = yield* UplinkAction.makeFind

    const send = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, query: UplinkQuery) {
      const action = yield* Effect.fromResult(findAction(query.action))
      const ip = clientAddress(request)
      const { device_name: deviceName, product_key: productKey, random, sign, sign_method: signMethod } = query
      const proved = yield* authenticator.prove({
        transport: "http",
        address: ip,
        device: { productKey, deviceName },
        password: sign,
        authorization: request.headers["authorization"]
      })
      const device = Option.isSome(proved) ? proved.value : yield* authenticator.authenticateUplink({
        productKey,
        deviceName,
        address: ip,
        random,
        signMethod,
        signature: UplinkAction.signatureHex(sign, signMethod)
      })
      if (limits.isOn("device")) yield* limits.check("device", device.deviceId)
      const { method, params, subDevice } = yield* readRequest(request, action, query)
      if (Option.isSome(replays)) yield* replays.value.use(device, random)
      yield* sessions.markSeen(device, ip)
      const receivedAt = clock.currentTimeMillisUnsafe()
      const reply: DeviceReply.DeviceReply = method.startsWith("combine.")
        ? yield* subDevices.answer(device, sessions.session(device.deviceId), ip, method, params)
        : yield* uplink.submit({
          device,
          method,
          params,
          receivedAt,
          ...subDevice === undefined ? {} : { subDevice }
        })
      if (reply.code !== 200) return yield* Effect.fail(uplinkRefusal(reply, method))
      const answer = { code: 0, message: "success", data: reply.data }
      if (query.pull !== "1") return HttpServerResponse.jsonUnsafe(answer)
      const waiting = yield* commands.pull(device)
      return HttpServerResponse.jsonUnsafe({
        ...answer,
        data_pending: waiting.map((message) => ({ ...message, version: "1.0.0" }))
      })
    })

    return handlers
      .handle(
        "registerDevice",
        ({ payload }) =>
          Effect.flatMap(address, (ip) => respond(provisioning.register(toCamelCase(payload), ip), tripleData))
      )
      .handle(
        "generateDevice",
        ({ payload }) =>
          Effect.flatMap(address, (ip) => respond(provisioning.generate(toCamelCase(payload), ip), tripleData))
      )
      .handleRaw("uplink", ({ query, request }) => send(request, query).pipe(Effect.catch(failWith)))
  })
)

/** Bytes that a message of a device may have, as on MQTT. */
const maxBodySize = 256 * 1024

const tripleData = ({ deviceName, deviceSecret, productKey }: Triple) => ({
  product_key: productKey,
  device_name: deviceName,
  device_secret: deviceSecret
})

const address = Effect.map(HttpServerRequest.HttpServerRequest, clientAddress)

type Unreadable = typeof BodyUnreadable.Type | typeof InvalidParameter.Type | typeof TooLarge.Type

const unreadable = () => BodyUnreadable.make({ message: "The body cannot be read" })

const tooLarge = TooLarge.make({ message: `The body is larger than ${maxBodySize} bytes` })

const parseJson = (text: string): Result.Result<unknown, Unreadable> => {
  try {
    return Result.succeed(JSON.parse(text))
  } catch {
    return Result.fail(BodyUnreadable.make({ message: "The body is not valid JSON" }))
  }
}

const parseBytes = (
  bytes: ArrayBuffer,
  hex: (text: string) => Result.Result<UplinkAction.UplinkRequest, Unreadable>
): Result.Result<UplinkAction.UplinkRequest, Unreadable> =>
  bytes.byteLength > maxBodySize ? Result.fail(tooLarge) : hex(Hex.encode(new Uint8Array(bytes)))

/** Reads the body in the form of its media type. */
const readRequest = (
  request: HttpServerRequest.HttpServerRequest,
  { hex, json }: UplinkAction.UplinkAction,
  query: UplinkQuery
): Effect.Effect<UplinkAction.UplinkRequest, Unreadable> => {
  const { "content-length": size = 0, "content-type": contentType = "" } = request.headers
  if (Number(size) > maxBodySize) return Effect.fail(tooLarge)
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase()
  const parse = (text: string): Result.Result<UplinkAction.UplinkRequest, Unreadable> => {
    if (text.length > maxBodySize) return Result.fail(tooLarge)
    return hex !== undefined && mediaType === "text/plain"
      ? hex(text)
      : Result.flatMap(parseJson(text), (body) => json(body, query))
  }
  return hex !== undefined && mediaType === "application/octet-stream"
    ? Effect.matchEffect(request.arrayBuffer, {
      onFailure: () => Effect.fail(unreadable()),
      onSuccess: (bytes) => Effect.fromResult(parseBytes(bytes, hex))
    })
    : Effect.matchEffect(request.text, {
      onFailure: () => Effect.fail(unreadable()),
      onSuccess: (text) => Effect.fromResult(parse(text))
    })
}
