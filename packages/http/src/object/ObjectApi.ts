/**
 * The routes by which files are uploaded (docs/api/objects.md).
 */
import { Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import { FileTooLarge } from "./ObjectFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"

const Upload = Schema.Struct({ file: Multipart.SingleFileSchema }).pipe(HttpApiSchema.asMultipart())

const md5 = Schema.String.annotate({ description: "Lower-case hex" })
const address = Schema.String.annotate({
  description: "GET, HEAD, ranges and ETags without an access key; DELETE with one"
})

/** The group `objects` of the typed client. */
export class ObjectApi extends HttpApiGroup.make("objects").add(
  HttpApiEndpoint.post("uploadObject", "/oss", {
    payload: Upload,
    success: Envelope(Schema.Struct({ url: address, md5 })),
    error: [FileTooLarge, QuotaExceeded]
  }).annotate(OpenApi.Summary, "Upload a file")
    .annotate(OpenApi.Description, "Streamed; the response comes when the file is stored."),
  HttpApiEndpoint.post("uploadFirmwareFile", "/oss/ota/:product_key", {
    params: PathParams.productKey,
    payload: Upload,
    success: Envelope(
      Schema.Struct({ filename: address, size: Schema.Int.annotate({ description: "Bytes" }), md5 })
    ),
    error: [NoSuchProduct, FileTooLarge, QuotaExceeded]
  }).annotate(OpenApi.Summary, "Upload a firmware file of a product")
).annotate(OpenApi.Title, "Objects") {}
