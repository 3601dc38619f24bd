/**
 * The routes of batches of devices (docs/api/devices.md).
 */
import { BatchDraft } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DateText, Envelope, Paged, pageQuery } from "../Envelope.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { DeviceNamesTaken, NoSuchBatch, NotACloudGateway } from "./DeviceFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const BatchId = Envelope(Schema.Struct({ batch_id: Schema.Int }))

/** A batch. */
export const BatchInfo = Schema.Struct({
  batch_id: Schema.Int,
  product_key: Schema.String,
  num: Schema.Int,
  desc: Schema.String,
  created_at: DateText
}).annotate({ identifier: "Batch" })

/** The group `batches` of the typed client. */
export class BatchApi extends HttpApiGroup.make("batches").add(
  HttpApiEndpoint.post("createBatch", "/products/:product_key/batch-things", {
    params: PathParams.productKey,
    payload: toSnakeCase(BatchDraft).annotate({
      examples: [{ num: 1000, desc: "First run" }, { device_names: ["lamp-0001", "lamp-0002"] }]
    }),
    success: BatchId,
    error: [DeviceNamesTaken, NoSuchProduct, NotACloudGateway, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create up to 10,000 devices at once")
    .annotate(
      OpenApi.Description,
      "All of them or none: `num` devices, or one for each of `device_names`. `GET /things?batch_id=…` lists them."
    ),
  HttpApiEndpoint.get("listBatches", "/products/:product_key/batch-things", {
    params: PathParams.productKey,
    query: pageQuery,
    success: Paged(BatchInfo),
    error: NoSuchProduct
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the batches of a product"),
  HttpApiEndpoint.get("getBatch", "/products/:product_key/batch-things/:batch_id", {
    params: PathParams.batch,
    query: { format: Schema.optional(Schema.Literals(["json", "csv"])) },
    success: [Envelope(BatchInfo), Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" }))],
    error: NoSuchBatch
  }).middleware(ExpensiveRead).annotate(
    OpenApi.Summary,
    "Read a batch, or with `format=csv` the triples of its devices"
  )
    .annotate(OpenApi.Description, "The triples hold secrets: they need the role operator."),
  HttpApiEndpoint.delete("deleteBatch", "/products/:product_key/batch-things/:batch_id", {
    params: PathParams.batch,
    success: BatchId,
    error: NoSuchBatch
  }).annotate(OpenApi.Summary, "Delete a batch with its devices")
).annotate(OpenApi.Title, "Batches") {}
