/**
 * The methods that carry bytes (docs/protocol/raw.md). With a codec, bytes become
 * messages, which take the way of all messages; without one, they are kept as
 * events.
 */
import { Effect, Layer, Option, Result } from "effect"
import { Hex } from "effect/encoding"
import { CodecCache } from "../../codec/CodecCache.ts"
import type { CodecMessage, CodecMisfit } from "../../codec/CodecDescription.ts"
import * as ProductCodec from "../../codec/ProductCodec.ts"
import { type Command, maxWaiting, methodOf } from "../../command/Command.ts"
import { CommandStore } from "../../command/CommandStore.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { DeviceMethods } from "../DeviceMethods.ts"
import { type DeviceReply, failure, parameterError, success, systemError } from "../DeviceReply.ts"
import { Uplink } from "../Uplink.ts"
import type { UplinkMessage } from "../UplinkMessage.ts"
import { recordAs } from "./RecordMethods.ts"

export const layer: Layer.Layer<never, never, DeviceMethods | Uplink | CodecCache | CommandStore> = Layer.effectDiscard(
  DeviceMethods.use((registry) => Effect.orDie(registry.register([rawPost, rawReply, keptPost, keptReply])))
)

/** Methods of the cloud itself: no topic and no request can name them. */
const keptPostName = "thing.model.up_raw#kept"
const keptReplyName = "thing.model.down_raw_reply#kept"

const notBytes = parameterError("expected bytes")

const keep = (name: string, eventId: string) =>
  recordAs(eventId, { name, form: "bytes", fits: (params) => typeof params === "string", refusal: notBytes })

const keptPost = keep(keptPostName, "raw")
const keptReply = keep(keptReplyName, "raw_reply")

/** Hex text of whole bytes. */
const decodeBytes = ({ params }: UplinkMessage): Result.Result<Uint8Array, DeviceReply> => {
  const bytes = typeof params === "string" ? Hex.decode(params) : undefined
  return bytes !== undefined && Result.isSuccess(bytes)
    ? Result.succeed(bytes.success)
    : Result.fail(notBytes)
}

/** Hands on what the bytes of a message say. */
const submit = (
  { bytes = 0, carrier, device, receivedAt }: UplinkMessage,
  method: string,
  params: unknown
): Effect.Effect<DeviceReply, StoreError, Uplink> =>
  Uplink.use((uplink) =>
    uplink.submit({ device, method, params, receivedAt, bytes, ...carrier === undefined ? {} : { carrier } })
  )

const codecMisfit = ({ message }: CodecMisfit): DeviceReply => failure(26_002, `the codec does not fit: ${message}`)

/** Adds the bytes of a receipt, if the codec describes any that fit. */
const withReceipt = (codec: ProductCodec.ProductCodec, reply: DeviceReply, report: CodecMessage): DeviceReply => {
  const { code, data, message } = reply
  const receipt = ProductCodec.encode(codec, "receipts", {
    method: report.method,
    id: report.id,
    code,
    message,
    data: data as NonNullable<CodecMessage["data"]>
  })
  return Result.isSuccess(receipt) ? { ...reply, bytes: receipt.success } : reply
}

const report = Effect.fnUntraced(function*(
  codec: Option.Option<ProductCodec.ProductCodec>,
  bytes: Uint8Array,
  message: UplinkMessage
) {
  if (Option.isNone(codec)) return yield* submit(message, keptPostName, message.params)
  const decoded = ProductCodec.decode(codec.value, "reports", bytes)
  if (Result.isFailure(decoded)) return withReceipt(codec.value, codecMisfit(decoded.failure), {})
  const { method, params } = decoded.success
  return withReceipt(codec.value, yield* submit(message, method!, params), decoded.success)
})

/**
 * Bytes that a device reports. Neighbours become one batch of messages. The codecs
 * are read before the first is handed on: reports that wait for them would overtake
 * each other.
 */
const rawPost = DeviceMethod.requests({
  name: "thing.model.up_raw",
  form: "bytes",
  action: "PostHex",
  decode: decodeBytes,
  handle: Effect.fnUntraced(function*(requests) {
    const codecs = yield* (yield* CodecCache).ofProducts(requests.map(({ message }) => message.device.productKey))
    return yield* Effect.forEach(
      requests,
      ({ message, request }) =>
        // A repetition of the whole batch would report the others twice.
        report(codecs.get(message.device.productKey)!, request, message).pipe(
          Effect.catch((error) =>
            Effect.as(Effect.logError("Bytes of a device could not be stored", error), systemError)
          )
        ),
      { concurrency: "unbounded" }
    )
  })
})

/** Bytes of the longest id. */
const maxIdSize = 8

/** Returns the command that an answer belongs to. `commands`: those that have not ended, oldest first. */
const answered = (commands: ReadonlyArray<Command>, { id, method }: CodecMessage): Command | undefined => {
  const open = commands.filter((command) =>
    command.userTopic === null && (method === undefined || method === methodOf(command))
  )
  if (id === undefined) return open[0]
  // The device repeats as many low bits of the id as its bytes hold.
  for (let size = maxIdSize; size > 0; size--) {
    const found = open.findLast(({ messageId }) => messageId % 256 ** size === Number(id))
    if (found !== undefined) return found
  }
  return undefined
}

const answer = Effect.fnUntraced(function*(bytes: Uint8Array, message: UplinkMessage) {
  const { deviceId, productKey } = message.device
  const codec = yield* (yield* CodecCache).ofProduct(productKey)
  if (Option.isNone(codec)) return yield* submit(message, keptReplyName, message.params)
  const decoded = ProductCodec.decode(codec.value, "answers", bytes)
  if (Result.isFailure(decoded)) return yield* submit(message, keptReplyName, message.params)
  // A command whose time is over has a minute more for its answer.
  const open = yield* (yield* CommandStore).unfinished({ deviceId, after: 0, now: 0, limit: maxWaiting })
  const command = answered(open, decoded.success)
  if (command === undefined) return yield* submit(message, keptReplyName, message.params)
  const { code = success({}).code, data, message: said } = decoded.success
  return yield* submit(message, `${methodOf(command)}_reply`, { id: command.messageId, code, data, message: said })
})

/** Bytes with which a device replies to a command. One after the other: an answer without id ends the oldest. */
const rawReply = DeviceMethod.request({
  name: "thing.model.down_raw_reply",
  form: "bytes",
  action: "PostHex",
  decode: decodeBytes,
  handle: answer
})
