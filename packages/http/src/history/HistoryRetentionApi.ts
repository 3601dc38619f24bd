/**
 * The routes that say how long history is kept (docs/api/history.md).
 */
import { RetentionDays } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"

const Retention = Envelope(Schema.Struct({
  days: Schema.NullOr(Schema.Int).annotate({ description: "Null: the product has no days of its own" }),
  default_days: Schema.Int.annotate({ description: "What holds without days of its own; 0: for ever" })
}))

/** The group `historyRetention` of the typed client. */
export class HistoryRetentionApi extends HttpApiGroup.make("historyRetention").add(
  HttpApiEndpoint.get("getHistoryRetention", "/products/:product_key/history-retention", {
    params: PathParams.productKey,
    success: Retention,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Read how long the history of a product is kept"),
  HttpApiEndpoint.put("setHistoryRetention", "/products/:product_key/history-retention", {
    params: PathParams.productKey,
    payload: Schema.Struct({ days: RetentionDays }).annotate({ examples: [{ days: 90 }] }),
    success: Retention,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Set how long the history of a product is kept")
    .annotate(
      OpenApi.Description,
      "Counts for what is reported from then on; on SQLite and in memory also for what is stored."
    ),
  HttpApiEndpoint.delete("deleteHistoryRetention", "/products/:product_key/history-retention", {
    params: PathParams.productKey,
    success: Retention,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Keep the history of a product as long as that of others")
).annotate(OpenApi.Title, "History retention") {}
