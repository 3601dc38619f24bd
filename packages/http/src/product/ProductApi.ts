/**
 * The routes of products (docs/api/products.md).
 */
import {
  AuthType,
  DataFormat,
  DataSource,
  NetworkType,
  NodeType,
  ProductDraft,
  ProductStatus,
  ProductUpdate,
  ProtocolType,
  RotationDraft,
  UplinkSignature,
  ValidateType
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { NoSuchProject, QuotaExceeded } from "../project/ProjectFailures.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { NoSuchProduct, ProductHasDevices } from "./ProductFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

/** A product. */
export const ProductInfo = Schema.Struct({
  id: Schema.Int,
  project_id: Schema.String,
  product_key: Schema.String,
  product_secret: Schema.String,
  name: Schema.String,
  description: Schema.String,
  photo_url: Schema.String,
  device_type: Schema.String,
  node_type: NodeType,
  network_type: NetworkType,
  protocol_type: ProtocolType,
  validate_type: ValidateType,
  data_format: DataFormat,
  auth_type: AuthType,
  uplink_signature: UplinkSignature,
  dynamic_register: Schema.Boolean,
  status: ProductStatus,
  platform: Schema.Int,
  platform_name: Schema.String,
  data_source: DataSource,
  configuration: Schema.String,
  register_at: DateText,
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "ProductInfo" })

/** A product to begin with. */
export const TemplateRecord = Schema.Struct({
  template_id: Schema.String,
  name: Schema.String,
  description: Schema.String,
  product: Schema.Struct({
    node_type: NodeType,
    network_type: NetworkType,
    protocol_type: ProtocolType,
    validate_type: ValidateType,
    data_format: DataFormat,
    auth_type: AuthType
  }).annotate({ description: "What to create the product with, besides a name" }),
  thing_model: Schema.Record(Schema.String, Schema.Json).annotate({ description: "In the form metadata" })
}).annotate({ identifier: "ProductTemplate" })

const OneProduct = Envelope(Schema.Struct({ product_info: ProductInfo }))

/** The group `products` of the typed client. */
export class ProductApi extends HttpApiGroup.make("products").add(
  HttpApiEndpoint.post("createProduct", "/products", {
    payload: toSnakeCase(ProductDraft).annotate({
      examples: [{
        name: "Thermostat",
        node_type: "direct",
        network_type: "wifi",
        validate_type: "weak",
        data_format: "json",
        auth_type: "secret"
      }]
    }),
    success: OneProduct,
    error: [NoSuchProject, QuotaExceeded]
  }).middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Create a product")
    .annotate(OpenApi.Description, "The product starts in status developing, with a new key and secret."),
  HttpApiEndpoint.get("listProducts", "/products", { query: pageQuery, success: Paged(ProductInfo) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the products of the project"),
  HttpApiEndpoint.get("listProductTemplates", "/product-templates", {
    success: Envelope(Schema.Struct({ results: Schema.Array(TemplateRecord) }))
  }).annotate(OpenApi.Summary, "List templates of products, with their thing models"),
  HttpApiEndpoint.get("getProduct", "/products/:product_key", {
    params: PathParams.productKey,
    success: OneProduct,
    error: NoSuchProduct
  })
    .annotate(OpenApi.Summary, "Read a product"),
  HttpApiEndpoint.put("updateProduct", "/products/:product_key", {
    params: PathParams.productKey,
    payload: toSnakeCase(ProductUpdate),
    success: EnvelopeOnly,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Change a product"),
  HttpApiEndpoint.post("rotateProductSecret", "/products/:product_key/secret", {
    params: PathParams.productKey,
    payload: [RotationDraft, Schema.Null],
    success: Envelope(Schema.Struct({
      product_secret: Schema.String,
      previous_valid_until: DateText.annotate({ description: "RFC 3339; empty: the secret before counts no more" })
    })),
    error: NoSuchProduct
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Give a product a new secret")
    .annotate(OpenApi.Description, "The secret before counts for `overlap` seconds more, an hour by default."),
  HttpApiEndpoint.delete("deleteProduct", "/products/:product_key", {
    params: PathParams.productKey,
    success: EnvelopeOnly,
    error: [NoSuchProduct, ProductHasDevices]
  }).annotate(OpenApi.Summary, "Delete a product that has no devices"),
  HttpApiEndpoint.put("setProductStatus", "/products/:product_key/status", {
    params: PathParams.productKey,
    payload: Schema.Struct({ status: ProductStatus }),
    success: EnvelopeOnly,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Release a product, or take it back into development")
).annotate(OpenApi.Title, "Products") {}
