/**
 * The routes of thing models (docs/api/thing-models.md).
 */
import { ElementType, ModelType } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { InvalidThingModel, NoSuchElement } from "./ThingModelFailures.ts"
import { ReadOnly } from "../middleware/Authorization.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const Document = Schema.Record(Schema.String, Schema.Json)

const version = Schema.Int.annotate({
  description: "Grows by one with each change; 0: the product has never had a model"
})

const Exported = Envelope(Schema.Struct({ thing_model: Document, version }))

const Changed = Envelope(Schema.Struct({
  thing_model: Document.annotate({ description: "In the form metadata" }),
  version,
  warnings: Schema.Array(Schema.String).annotate({ description: "What the change means beyond the model itself" })
}))

const Version = Schema.Struct({ version, created_at: DateText, thing_model: Document })

const Element = Schema.Struct({
  type: ElementType,
  element: Document.annotate({ description: "In the form metadata" })
})

const ElementName = { type: ElementType, id: Schema.String }

const Compared = Schema.Struct({
  from_version: Schema.optional(Schema.Int.annotate({ description: "Default: the latest; 0: the empty model" })),
  to_version: Schema.optional(Schema.Int),
  model_type: Schema.optional(ModelType),
  model_data: Schema.optional(Schema.String.annotate({ description: "The model as JSON text" }))
}).check(
  Schema.makeFilter(({ model_data, model_type, to_version }) => {
    const refuse = (path: string, issue: string) => ({ path: [path], issue })
    if (to_version !== undefined) {
      return model_data === undefined && model_type === undefined
        ? undefined
        : refuse("to_version", "Expected a version, or model_type and model_data, not both")
    }
    if (model_data === undefined) return refuse("model_data", "Expected a model as JSON text, or a to_version")
    return model_type === undefined ? refuse("model_type", "Expected one of metadata, tsl, sdf") : undefined
  })
)

const Comparison = Schema.Struct({
  from_version: version,
  to_version: Schema.NullOr(version).annotate({ description: "Null: a document, which is not stored" }),
  thing_model: Document.annotate({ description: "The model that is compared with, in the form metadata" }),
  warnings: Schema.Array(Schema.String).annotate({ description: "What was changed to make the document fit" }),
  compatible: Schema.Boolean.annotate({ description: "Whether the change breaks nothing" }),
  breaks: Schema.Array(Schema.Struct({
    whom: Schema.Literals(["devices", "applications", "scenes"]),
    type: ElementType,
    id: Schema.String,
    message: Schema.String
  })),
  changes: Schema.Array(Schema.Struct({
    change: Schema.Literals(["added", "changed", "removed"]),
    type: ElementType,
    id: Schema.String,
    before: Schema.NullOr(Document).annotate({ description: "The element in the form metadata; null: it is added" }),
    after: Schema.NullOr(Document).annotate({ description: "The same; null: it is removed" })
  }))
})

/** The group `thingModels` of the typed client. */
export class ThingModelApi extends HttpApiGroup.make("thingModels").add(
  HttpApiEndpoint.get("getThingModel", "/products/:product_key/thing-model", {
    params: PathParams.productKey,
    query: { model_type: ModelType },
    success: Exported,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Read or export the thing model of a product")
    .annotate(OpenApi.Description, "`metadata`, `tsl`, or `sdf` (RFC 9880)."),
  HttpApiEndpoint.post("importThingModel", "/products/:product_key/thing-model", {
    params: PathParams.productKey,
    payload: Schema.Struct({
      model_type: ModelType,
      model_data: Schema.String.annotate({ description: "The model as JSON text" })
    }),
    success: Changed,
    error: [NoSuchProduct, InvalidThingModel]
  }).middleware(IdempotencyMiddleware).annotate(
    OpenApi.Summary,
    "Replace the thing model of a product by an imported one"
  )
    .annotate(OpenApi.Description, "All or nothing. What is wrong is named by its path in the document."),
  HttpApiEndpoint.put("copyThingModel", "/products/:product_key/thing-model", {
    params: PathParams.productKey,
    query: { source_product_key: PathParams.productKey.product_key },
    success: Changed,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Replace the thing model of a product by that of another one"),
  HttpApiEndpoint.delete("clearThingModel", "/products/:product_key/thing-model", {
    params: PathParams.productKey,
    success: Changed,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Empty the thing model of a product"),
  HttpApiEndpoint.get("listThingModelVersions", "/products/:product_key/thing-model/versions", {
    params: PathParams.productKey,
    success: Envelope(Schema.Struct({ results: Schema.Array(Version) })),
    error: NoSuchProduct
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the latest versions of the thing model, newest first"),
  HttpApiEndpoint.post("compareThingModel", "/products/:product_key/thing-model/comparison", {
    params: PathParams.productKey,
    payload: Compared.annotate({ examples: [{ from_version: 1, to_version: 2 }] }),
    success: Envelope(Comparison),
    error: [NoSuchProduct, InvalidThingModel]
  }).annotate(OpenApi.Summary, "Compare the thing model with another version or a document, and store nothing")
    .annotate(OpenApi.Description, "What is different, and what that breaks for whom. An invalid document is refused.")
    .annotate(ReadOnly, true),
  HttpApiEndpoint.post("addThingModelElement", "/products/:product_key/thing-model-element", {
    params: PathParams.productKey,
    payload: Element,
    success: Changed,
    error: [NoSuchProduct, InvalidThingModel]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Add a property, event or service"),
  HttpApiEndpoint.put("updateThingModelElement", "/products/:product_key/thing-model-element", {
    params: PathParams.productKey,
    payload: Element,
    success: Changed,
    error: [NoSuchProduct, NoSuchElement, InvalidThingModel]
  }).annotate(OpenApi.Summary, "Replace the property, event or service of the same id"),
  HttpApiEndpoint.delete("removeThingModelElement", "/products/:product_key/thing-model-element", {
    params: PathParams.productKey,
    query: { type: Schema.optional(ElementType), id: Schema.optional(Schema.String) },
    payload: [Schema.Struct(ElementName), Schema.Null],
    success: Changed,
    error: [NoSuchProduct, NoSuchElement]
  }).annotate(OpenApi.Summary, "Remove a property, event or service")
    .annotate(OpenApi.Description, "It is named by `type` and `id`, in the body or the query.")
).annotate(OpenApi.Title, "Thing models") {}
