/**
 * The routes by which an application asks something of devices, and reads what
 * became of it (docs/api/commands.md).
 */
import { CommandState, maxBroadcastBytes, RawBytes, TimeToLive, UserMessage, WaitTime } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import {
  DeviceNotConnected,
  MessageNotQueued,
  NoReply,
  NoSuchMessage,
  TooManyBroadcasts,
  TooManyMessages
} from "./CommandFailures.ts"
import { DeviceDisabled, NoSuchDevice } from "../device/DeviceFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { InvalidValue, NoSuchElement } from "../thing-model/ThingModelFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const Params = Schema.Record(Schema.String, Schema.Json)

const Call = Schema.Struct({
  params: Params,
  ttl: Schema.optional(
    TimeToLive.annotate({
      description: "Seconds until it expires; 0: only if the device is online now; default 7 days"
    })
  ),
  wait: Schema.optional(
    WaitTime.annotate({ description: "Seconds to wait for the reply; default 8 for synchronous services, else 0" })
  )
}).annotate({ examples: [{ params: { TargetTemperature: 21.5 }, ttl: 3600 }] })

const userMessage = {
  payload: Schema.String,
  encoding: Schema.optional(
    UserMessage.fields.encoding.annotate({ description: "How `payload` stands for bytes; default utf8" })
  )
}

const Accepted = Envelope(Schema.Struct({ message_id: Schema.String }))

const Answered = Envelope(
  Schema.Struct({
    message_id: Schema.String,
    state: Schema.optional(CommandState.annotate({ description: "As all below: of a call that has waited" })),
    code: Schema.optional(
      Schema.NullOr(Schema.Int).annotate({ description: "The code of the reply; null: none came" })
    ),
    message: Schema.optional(Schema.String),
    data: Schema.optional(Schema.Json)
  })
)

/** A command, and what became of it. */
export const Message = Schema.Struct({
  message_id: Schema.String,
  type: Schema.Literals(["property", "service", "user", "raw"]),
  service_id: Schema.String,
  topic: Schema.String.annotate({ description: "Of a user message" }),
  params: Params,
  state: CommandState,
  deliveries: Schema.Int.annotate({ description: "How often it was handed to the device" }),
  code: Schema.NullOr(Schema.Int).annotate({ description: "The code of the device's reply; 200: done" }),
  message: Schema.String,
  data: Schema.Json,
  created_at: DateText,
  expires_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "Message" })

/** The group `commands` of the typed client. */
export class CommandApi extends HttpApiGroup.make("commands").add(
  HttpApiEndpoint.post("setDeviceProperties", "/things/:device_id/properties", {
    params: PathParams.deviceId,
    payload: Call,
    success: Answered,
    error: [NoSuchDevice, DeviceDisabled, NoSuchElement, InvalidValue, DeviceNotConnected, NoReply, TooManyMessages]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Set properties of a device")
    .annotate(OpenApi.Description, "Delivered now, or when the device comes back."),
  HttpApiEndpoint.post("callDeviceService", "/things/:device_id/services/:service_id", {
    params: PathParams.service,
    payload: Call,
    success: Answered,
    error: [NoSuchDevice, DeviceDisabled, NoSuchElement, InvalidValue, DeviceNotConnected, NoReply, TooManyMessages]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Call a service of a device")
    .annotate(
      OpenApi.Description,
      "Delivered now, or when the device comes back. The response to a synchronous call has the device's reply."
    ),
  HttpApiEndpoint.post("sendUserMessage", "/things/:device_id/user-messages", {
    params: PathParams.deviceId,
    payload: Schema.Struct({
      topic: UserMessage.fields.topic.annotate({
        description: "Levels after `/{product_key}/{device_name}/user/`, without wildcards"
      }),
      ...userMessage,
      ttl: Call.fields.ttl,
      wait: Schema.optional(
        WaitTime.annotate({ description: "Seconds to wait for the bytes of a reply; default 0: there is none" })
      )
    }).annotate({ examples: [{ topic: "display/text", payload: "Hello", encoding: "utf8" }] }),
    success: Answered,
    error: [NoSuchDevice, DeviceDisabled, InvalidValue, DeviceNotConnected, NoReply, TooManyMessages]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send a device bytes on a topic of your own")
    .annotate(
      OpenApi.Description,
      "Delivered now, or when the device comes back; what it says there is an event `user`. With `wait`, the device " +
        "gets it on `/ext/rrpc/{message_id}/{product_key}/{device_name}/user/{topic}` and replies there; `data` of " +
        "the response has the `payload` and `encoding` of the reply."
    ),
  HttpApiEndpoint.post("broadcast", "/products/:product_key/broadcast", {
    params: PathParams.productKey,
    payload: Schema.Struct({
      topic: UserMessage.fields.topic.annotate({ description: "Levels after `/broadcast/{product_key}/`" }),
      ...userMessage
    }).annotate({ examples: [{ topic: "alerts", payload: "U3Rvcm0=", encoding: "base64" }] }),
    success: EnvelopeOnly,
    error: [NoSuchProduct, TooManyBroadcasts]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send bytes to all devices of a product that listen")
    .annotate(
      OpenApi.Description,
      `At most ${maxBroadcastBytes} bytes, once a second. Devices that are not connected, or have not subscribed to ` +
        "`/broadcast/{product_key}/{topic}`, never get them."
    ),
  HttpApiEndpoint.post("sendRaw", "/things/:device_id/raw", {
    params: PathParams.deviceId,
    payload: Schema.Struct({
      data: RawBytes.annotate({ description: "Bytes as hex text" }),
      ttl: Call.fields.ttl
    }).annotate({ examples: [{ data: "a10700" }] }),
    success: Accepted,
    error: [NoSuchDevice, DeviceDisabled, InvalidValue, TooManyMessages]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send a device bytes on its topic for bytes")
    .annotate(OpenApi.Description, "As they are, whether the product has a codec or not."),
  HttpApiEndpoint.get("listMessages", "/things/:device_id/messages", {
    params: PathParams.deviceId,
    query: pageQuery,
    success: Paged(Message),
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the commands of a device, newest first"),
  HttpApiEndpoint.get("getMessage", "/things/:device_id/messages/:message_id", {
    params: PathParams.message,
    success: Envelope(Message),
    error: [NoSuchDevice, NoSuchMessage]
  }).annotate(OpenApi.Summary, "Read what became of a call"),
  HttpApiEndpoint.delete("cancelMessage", "/things/:device_id/messages/:message_id", {
    params: PathParams.message,
    success: EnvelopeOnly,
    error: [NoSuchDevice, NoSuchMessage, MessageNotQueued]
  }).annotate(OpenApi.Summary, "Cancel a call that has not been delivered")
).annotate(OpenApi.Title, "Commands") {}
