/**
 * `POST /auth` and `POST /topic/…`: messages over HTTP with a token, as public
 * device SDKs send them (docs/protocol/http-uplink.md#with-a-token).
 */
import {
  DeviceAuthenticator,
  DeviceMethods,
  DeviceName,
  DeviceReply,
  DeviceSessions,
  KnownAddresses,
  ProductKey,
  SignMethod,
  type StoreError,
  Text,
  TraceRecorder,
  Uplink,
  UplinkRates,
  UplinkTrace
} from "@device-cloud/core"
import { Clock, Effect, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { failWith } from "../DomainFailures.ts"
import { clientAddress, countedAddress } from "../middleware/ClientAddress.ts"
import { toResponse } from "../middleware/ErrorEnvelope.ts"
import { RateLimits } from "../middleware/RateLimits.ts"
import type { Route } from "../middleware/RouteTable.ts"
import { type AlinkMessage, type AlinkTopic, parseTopic, readMessage, unanswered } from "./AlinkTopic.ts"

const authPath = "/auth"
const topicPath = "/topic/*"
/** What stands before the topic in a URL. */
const topicPrefix = "/topic"

/** The routes that {@link layer} serves. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: authPath },
  { method: "POST", path: topicPath }
]

const SignIn = Schema.Struct({
  productKey: Text(128).pipe(Schema.decodeTo(ProductKey)),
  deviceName: Text(128).pipe(Schema.decodeTo(DeviceName)),
  clientId: Text(256),
  sign: Text(128),
  signmethod: Schema.optional(SignMethod),
  timestamp: Schema.optional(Schema.Union([Text(32), Schema.Finite]))
})
const decodeSignIn = Schema.decodeUnknownEffect(SignIn)

/** Why a request was refused, as these SDKs know it. */
interface Refusal {
  readonly code: number
  readonly message: string
  readonly info?: object
}

const paramError = (message: string): Refusal => ({ code: 10001, message: `param error: ${message}` })
const authCheckError: Refusal = { code: 20000, message: "auth check error" }
const tokenExpired: Refusal = { code: 20001, message: "token is expired" }
const tokenIsNull: Refusal = { code: 20002, message: "token is null" }
const checkTokenError: Refusal = { code: 20003, message: "check token error" }
const tooMany: Refusal = { code: 40000, message: "request too many" }

/** Serves the routes. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const authenticator = yield* DeviceAuthenticator
  const methods = yield* DeviceMethods
  const sessions = yield* DeviceSessions
  const uplink = yield* Uplink
  const rates = yield* UplinkRates
  const limits = yield* RateLimits
  const known = yield* KnownAddresses
  const trace = yield* UplinkTrace
  const recorder = yield* TraceRecorder
  const clock = yield* Clock.Clock
  let count = 0

  const noteRefused =
    (name: Pick<AlinkTopic, "productKey" | "deviceName">, address: string) => ({ message }: CheckFailure) =>
      Effect.sync(() => recorder.noteNamed(name, { kind: "refused", transport: "http", address, reason: message }))

  const signIn = Effect.gen(function*() {
    const request = yield* HttpServerRequest.HttpServerRequest
    const body = yield* Effect.mapError(
      Effect.flatMap(request.json, decodeSignIn),
      () => paramError("expected productKey, deviceName, clientId, sign, and perhaps signmethod and timestamp")
    )
    const { clientId, deviceName, productKey, sign, signmethod = "hmacmd5", timestamp } = body
    const address = clientAddress(request)
    const token = yield* authenticator.issueAccessToken({
      productKey,
      deviceName,
      address,
      clientId,
      timestamp: timestamp === undefined ? undefined : String(timestamp),
      signMethod: signmethod,
      signature: sign
    }).pipe(
      Effect.tapError(noteRefused({ productKey, deviceName }, address)),
      Effect.mapError(refusalOf(authCheckError))
    )
    return { token }
  })

  /** Checks the token, and the rates of its device. */
  const authenticate = Effect.fnUntraced(function*(
    request: HttpServerRequest.HttpServerRequest,
    { deviceName, productKey }: AlinkTopic
  ) {
    const token = request.headers["password"] ?? ""
    if (token === "") return yield* Effect.fail(tokenIsNull)
    const address = clientAddress(request)
    const device = yield* authenticator.authenticateAccessToken({ productKey, deviceName, address, token }).pipe(
      Effect.tapError(noteRefused({ productKey, deviceName }, address)),
      Effect.mapError(refusalOf(checkTokenError))
    )
    known.add(countedAddress(request))
    if (limits.isOn("device")) {
      yield* Effect.mapError(limits.check("device", device.deviceId), () => tooMany)
    }
    return device
  })

  const publish = Effect.gen(function*() {
    const request = yield* HttpServerRequest.HttpServerRequest
    const topic = parseTopic(topicOf(request.url), methods)
    if (topic === undefined) return yield* Effect.fail(paramError("no message of a device comes on this topic"))
    const device = yield* authenticate(request, topic)
    const body = yield* Effect.mapError(request.arrayBuffer, () => paramError("the body is too large or not whole"))
    const bytes = new Uint8Array(body)
    const receivedAt = clock.currentTimeMillisUnsafe()
    const note = (reply: DeviceReply.DeviceReply, about?: { readonly method: string; readonly params: unknown }) => {
      const arrived = { device, transport: "http", topic: topicOf(request.url), payload: bytes, receivedAt }
      if (trace.isOn()) trace.note({ ...arrived, ...about }, reply)
    }
    if (!rates.admits(device, bytes.length)) {
      note(DeviceReply.tooManyRequests)
      return yield* Effect.fail(tooMany)
    }
    const message = yield* Effect.mapError(Effect.fromResult(readMessage(topic, bytes)), (expected) => {
      note(DeviceReply.parameterError(expected))
      return paramError(expected)
    })
    yield* sessions.markSeen(device, clientAddress(request), { transport: "http" })
    const { method } = topic
    const { params } = message
    const reply = yield* uplink.submit({ device, method, params, receivedAt, bytes: bytes.length })
    note(reply, { method, params })
    const messageId = receivedAt * 1000 + count++ % 1000
    const info = unanswered.has(topic.form) ? { messageId } : { messageId, data: encodeReply(topic, message, reply) }
    if (reply.code === 200) return info
    return yield* Effect.fail<Refusal>({ code: 30001, message: `publish message error: ${reply.message}`, info })
  })

  const respond = <R>(handled: Effect.Effect<object, Refusal | StoreError, R>) =>
    Effect.matchEffect(handled, {
      onSuccess: (info) => Effect.succeed(HttpServerResponse.jsonUnsafe({ code: 0, message: "success", info })),
      onFailure: (refusal) =>
        "_tag" in refusal
          ? failWith(refusal).pipe(Effect.catch((unreachable) => Effect.succeed(toResponse(unreachable))))
          : Effect.succeed(HttpServerResponse.jsonUnsafe(refusal))
    })

  yield* router.add("POST", authPath, respond(signIn))
  yield* router.add("POST", topicPath, respond(publish))
}))

/** The failures of a check by which a device proves who it is. */
type CheckFailure = Effect.Error<ReturnType<DeviceAuthenticator["Service"]["authenticateAccessToken"]>>

/** Returns what a failed check becomes. `usual`: what most become. */
const refusalOf = (usual: Refusal) => (error: CheckFailure): Refusal | StoreError => {
  switch (error._tag) {
    case "StoreError":
      return error
    case "TooManyWrongSignatures":
      return tooMany
    case "AccessTokenExpired":
      return tokenExpired
    default:
      return usual
  }
}

/** The topic that a URL names; empty: it names none. */
const topicOf = (url: string): string => {
  const [path = ""] = url.split("?")
  try {
    return decodeURIComponent(path.slice(topicPrefix.length))
  } catch {
    return ""
  }
}

/** The reply as the device would get it over MQTT, in base64. */
const encodeReply = (
  { method }: AlinkTopic,
  { id }: AlinkMessage,
  { bytes, code, data, message }: DeviceReply.DeviceReply
): string => Base64.encode(bytes ?? JSON.stringify({ code, data, id, message, method, version: "1.0" }))
