/**
 * Handlers of the routes that devices call.
 */
import {
  Commands,
  DeviceAuthenticator,
  DeviceReply,
  DeviceSessions,
  KnownAddresses,
  Mac,
  Provisioning,
  ReplayGuard,
  SubDeviceSessions,
  tracedText,
  TraceRecorder,
  type Triple,
  UnfreshSignature,
  Uplink,
  UplinkRates,
  UplinkTrace
} from "@device-cloud/core"
import { ByteSize, Clock, Context, Effect, Option, Result } from "effect"
import { Hex } from "effect/encoding"
import { type HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { uplinkSize } from "../middleware/BodyLimits.ts"
import { clientAddress, clientCertificate, countedAddress, GivenPeer } from "../middleware/ClientAddress.ts"
import { RateLimits } from "../middleware/RateLimits.ts"
import { failWith } from "../DomainFailures.ts"
import { BodyUnreadable, type InvalidParameter, invalidParameter, TooLarge, TooManyRequests } from "../Failure.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { UplinkQuery } from "./DeviceAccessApi.ts"
import * as UplinkAction from "./UplinkAction.ts"
import { uplinkRefusal } from "./UplinkRefusals.ts"

/** Whether the random of each message counts once, not only where the product requires it. */
export const StrictReplay = Context.Reference<boolean>("@device-cloud/http/StrictReplay", {
  defaultValue: () => false
})

/** Implements the group `device-access`. */
export const layer = group(
  Api,
  "device-access",
  Effect.fnUntraced(function*(handlers) {
    const provisioning = yield* Provisioning
    const authenticator = yield* DeviceAuthenticator
    const sessions = yield* DeviceSessions
    const uplink = yield* Uplink
    const rates = yield* UplinkRates
    const subDevices = yield* SubDeviceSessions
    const commands = yield* Commands
    const limits = yield* RateLimits
    const known = yield* KnownAddresses
    const replays = yield* ReplayGuard
    const strictReplay = yield* StrictReplay
    const clock = yield* Clock.Clock
    const mac = yield* Mac
    const trace = yield* UplinkTrace
    const recorder = yield* TraceRecorder
    const findAction = yield* UplinkAction.makeFind

    /** Finds the device of a message. `once`: the random that counts once; undefined: none does. */
    const identify = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, query: UplinkQuery) {
      const { device_name: deviceName, product_key: productKey, sign } = query
      const once = strictReplay ? query.random : undefined
      const address = clientAddress(request)
      const device = { productKey, deviceName }
      const proved = yield* authenticator.prove({
        transport: "http",
        address,
        device,
        password: sign,
        authorization: request.headers["authorization"]
      })
      if (Option.isSome(proved)) return { device: proved.value, once }
      const certificate = clientCertificate(request, yield* GivenPeer)
      const holder = certificate === undefined
        ? Option.none()
        : yield* authenticator.authenticateCertificate({ fingerprint: Hex.encode(mac.sha256(certificate)), device })
      if (Option.isSome(holder)) return { device: holder.value, once }
      const { random, signMethod, signature } = yield* Effect.fromResult(signatureOf(query))
      const { content_sha256: contentSha256, timestamp } = query
      const admitted = yield* authenticator.authenticateUplink({
        address,
        random,
        timestamp,
        contentSha256,
        signMethod,
        signature,
        // V8 copies a spread fast only when it stands last.
        ...device
      })
      return { device: admitted.device, once: admitted.isOnce ? random : once }
    })

    const send = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, query: UplinkQuery) {
      const action = yield* Effect.fromResult(findAction(query.action))
      const ip = clientAddress(request)
      const { content_sha256: contentSha256, timestamp } = query
      const { device, once } = yield* identify(request, query).pipe(
        Effect.tapError(({ message }) =>
          Effect.sync(() =>
            recorder.noteNamed({ productKey: query.product_key, deviceName: query.device_name }, {
              kind: "refused",
              transport: "http",
              address: ip,
              reason: message
            })
          )
        )
      )
      known.add(countedAddress(request))
      if (limits.isOn("device")) yield* limits.check("device", device.deviceId)
      const announced = announcedSize(request)
      if (announced > maxBodySize) return yield* Effect.fail(tooLarge)
      if (!rates.admits(device, announced)) return yield* aboveRate(rates.pause(device))
      const isRight = (bytes: Uint8Array) => Hex.encode(mac.sha256(bytes)) === contentSha256?.toLowerCase()
      const reading = contentSha256 === undefined
        ? readRequest(request, action, query)
        : readSigned(request, action, query, isRight)
      const receivedAt = clock.currentTimeMillisUnsafe()
      const { body, bytes, method, params, subDevice } = yield* Effect.tapError(
        reading,
        (refusal) =>
          Effect.sync(() => {
            if (refusal === tooLarge) rates.charge(device, 0, maxBodySize - announced)
            const reply = DeviceReply.parameterError(refusal.message)
            trace.note({ device, transport: "http", topic: query.action, payload: "", receivedAt }, reply)
          })
      )
      if (bytes > announced) rates.charge(device, 0, bytes - announced)
      if (once !== undefined) yield* replays.use(device, once, timestamp)
      yield* sessions.markSeen(device, ip, { transport: "http" })
      const reply: DeviceReply.DeviceReply = method.startsWith("combine.")
        ? yield* subDevices.answer(device, sessions.session(device.deviceId), ip, method, params)
        : yield* uplink.submit({
          device,
          method,
          params,
          receivedAt,
          bytes,
          ...subDevice === undefined ? {} : { subDevice }
        })
      if (trace.isOn()) {
        const arrived = { device, transport: "http", topic: query.action, payload: body, receivedAt }
        trace.note({ ...arrived, subDevice, method, params }, reply)
      }
      if (reply.code !== 200) return yield* Effect.fail(uplinkRefusal(reply, method))
      const answer = { code: 0, message: "success", data: reply.data }
      if (query.pull !== "1") return HttpServerResponse.jsonUnsafe(answer)
      const waiting = (yield* commands.pull(device)).map(({ id, method, params }) => ({
        id,
        method,
        params,
        version: "1.0.0"
      }))
      if (recorder.isTraced(device.deviceId)) {
        for (const message of waiting) {
          const payload = tracedText(JSON.stringify(message))
          recorder.note(device.deviceId, { kind: "downlink", transport: "http", topic: message.method, payload })
        }
      }
      return HttpServerResponse.jsonUnsafe({ ...answer, data_pending: waiting })
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

/** What a device without a client certificate signs with; fails with the parameters that are missing. */
const signatureOf = ({ random, sign, sign_method: signMethod }: UplinkQuery) => {
  if (random !== undefined && sign !== undefined && signMethod !== undefined) {
    return Result.succeed({ random, signMethod, signature: UplinkAction.signatureHex(sign, signMethod) })
  }
  const missing = Object.entries({ random, sign, signMethod }).filter(([, value]) => value === undefined)
  return Result.fail(
    invalidParameter(missing.map(([name]) => ({
      path: [name],
      message: "Expected a value: a device without a client certificate signs what it sends"
    })))
  )
}

/** Bytes that a message of a device may have, as on MQTT. */
const maxBodySize = ByteSize.toNumberUnsafe(uplinkSize)

const tripleData = ({ deviceName, deviceSecret, productKey }: Triple) => ({
  product_key: productKey,
  device_name: deviceName,
  device_secret: deviceSecret
})

const address = Effect.map(HttpServerRequest.HttpServerRequest, clientAddress)

type Unreadable = typeof BodyUnreadable.Type | typeof InvalidParameter.Type | typeof TooLarge.Type

const unreadable = ({ reason }: HttpServerError.HttpServerError): Unreadable =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
    ? tooLarge
    : BodyUnreadable.make({ message: "The body cannot be read" })

/** `pause`: milliseconds until the device may send again. */
const aboveRate = (pause: number) =>
  Effect.fail(TooManyRequests.make({
    message: "The device, or its project, sends more than it may; try again later",
    data: { retry_after: Math.max(1, Math.ceil(pause / 1000)) }
  }))

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

/** Whether an action takes bytes of this media type, or hex as text. */
const mediaTypeOf = ({ headers }: HttpServerRequest.HttpServerRequest): string =>
  (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase()

const parseText = (
  text: string,
  mediaType: string,
  { hex, json }: UplinkAction.UplinkAction,
  query: UplinkQuery
): Result.Result<UplinkAction.UplinkRequest, Unreadable> => {
  if (text.length > maxBodySize) return Result.fail(tooLarge)
  return hex !== undefined && mediaType === "text/plain"
    ? hex(text)
    : Result.flatMap(parseJson(text), (body) => json(body, query))
}

/** The size of the body in bytes; 0: the request does not announce it. */
const announcedSize = ({ headers }: HttpServerRequest.HttpServerRequest): number =>
  Number(headers["content-length"] ?? 0)

/** What a body asks for, and its size. */
interface ReadRequest extends UplinkAction.UplinkRequest {
  readonly bytes: number
  /** The body as it came. */
  readonly body: string | Uint8Array
}

const withSize = (body: string | Uint8Array, read: Result.Result<UplinkAction.UplinkRequest, Unreadable>) =>
  Effect.fromResult(Result.map(read, (request): ReadRequest => ({ bytes: body.length, body, ...request })))

/** Reads the body in the form of its media type. */
const readRequest = (
  request: HttpServerRequest.HttpServerRequest,
  action: UplinkAction.UplinkAction,
  query: UplinkQuery
): Effect.Effect<ReadRequest, Unreadable> => {
  const { hex } = action
  const mediaType = mediaTypeOf(request)
  return hex !== undefined && mediaType === "application/octet-stream"
    ? Effect.matchEffect(request.arrayBuffer, {
      onFailure: (error) => Effect.fail(unreadable(error)),
      onSuccess: (bytes) => withSize(new Uint8Array(bytes), parseBytes(bytes, hex))
    })
    : Effect.matchEffect(request.text, {
      onFailure: (error) => Effect.fail(unreadable(error)),
      onSuccess: (text) => withSize(text, parseText(text, mediaType, action, query))
    })
}

/** Reads a body whose bytes are signed. */
const readSigned = (
  request: HttpServerRequest.HttpServerRequest,
  action: UplinkAction.UplinkAction,
  query: UplinkQuery,
  isRight: (bytes: Uint8Array) => boolean
): Effect.Effect<ReadRequest, Unreadable | UnfreshSignature> => {
  const mediaType = mediaTypeOf(request)
  return Effect.matchEffect(request.arrayBuffer, {
    onFailure: (error) => Effect.fail(unreadable(error)),
    onSuccess: (buffer): Effect.Effect<ReadRequest, Unreadable | UnfreshSignature> => {
      const bytes = new Uint8Array(buffer)
      if (!isRight(bytes)) {
        const expected = "expected the SHA-256 of the bytes of the body"
        return Effect.fail(new UnfreshSignature({ field: "contentSha256", expected }))
      }
      return withSize(
        bytes,
        action.hex !== undefined && mediaType === "application/octet-stream"
          ? parseBytes(buffer, action.hex)
          : parseText(new TextDecoder().decode(bytes), mediaType, action, query)
      )
    }
  })
}
