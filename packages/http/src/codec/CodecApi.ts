/**
 * The routes of codecs (docs/api/codecs.md).
 */
import { CodecDirection } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly } from "../Envelope.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { CodecMisfit, ProductNotRaw } from "./CodecFailures.ts"

const Document = Schema.Record(Schema.String, Schema.Json)

const description = Document.annotate({ description: "reports, receipts, commands and answers: docs/api/codecs.md" })

const Stored = Envelope(Schema.Struct({
  codec: Schema.NullOr(description).annotate({ description: "Null: the product has none" }),
  version: Schema.Int.annotate({ description: "Grows by one with each change; 0: the product has never had one" }),
  updated_at: DateText
}))

const Message = Schema.Struct({
  method: Schema.optional(Schema.String),
  id: Schema.optional(Schema.Union([Schema.String, Schema.Finite])),
  code: Schema.optional(Schema.Int),
  message: Schema.optional(Schema.String),
  params: Schema.optional(Document),
  data: Schema.optional(Document)
}).annotate({ identifier: "CodecMessage" })

const example = {
  direction: "reports",
  hex: "00e6",
  codec: {
    reports: [{
      method: "thing.event.property.post",
      parts: [{ type: "int", size: 2, scale: 0.1, to: "params.temperature" }]
    }]
  }
} as const

/** The group `codecs` of the typed client. */
export class CodecApi extends HttpApiGroup.make("codecs").add(
  HttpApiEndpoint.get("getCodec", "/products/:product_key/codec", {
    params: PathParams.productKey,
    success: Stored,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Read the codec of a product"),
  HttpApiEndpoint.put("putCodec", "/products/:product_key/codec", {
    params: PathParams.productKey,
    payload: Schema.Struct({ codec: description }).annotate({ examples: [{ codec: example.codec }] }),
    success: Stored,
    error: [NoSuchProduct, ProductNotRaw]
  }).annotate(OpenApi.Summary, "Describe the bytes of a raw product")
    .annotate(OpenApi.Description, "Counts at once for all of its devices. What is wrong is named by its path."),
  HttpApiEndpoint.delete("deleteCodec", "/products/:product_key/codec", {
    params: PathParams.productKey,
    success: EnvelopeOnly,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Remove the codec of a product"),
  HttpApiEndpoint.post("tryCodec", "/products/:product_key/codec/try", {
    params: PathParams.productKey,
    payload: Schema.Struct({
      direction: CodecDirection,
      codec: Schema.optional(description.annotate({ description: "Default: the codec of the product" })),
      hex: Schema.optional(Schema.String.annotate({ description: "Bytes to read" })),
      message: Schema.optional(Message.annotate({ description: "A message to write" }))
    }).annotate({ examples: [example] }),
    success: Envelope(Schema.Struct({ hex: Schema.String, message: Message })),
    error: [NoSuchProduct, CodecMisfit]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Convert bytes or a message, and change nothing")
    .annotate(OpenApi.Description, "The response has both sides.")
).annotate(OpenApi.Title, "Codecs") {}
