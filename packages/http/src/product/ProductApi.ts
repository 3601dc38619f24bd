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
  ValidateType
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { NoSuchProduct, ProductHasDevices } from "./ProductFailures.ts"
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
    success: OneProduct
  }).middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Create a product")
    .annotate(OpenApi.Description, "The product starts in status developing, with a new key and secret."),
  HttpApiEndpoint.get("listProducts", "/products", { query: pageQuery, success: Paged(ProductInfo) })
    .annotate(OpenApi.Summary, "List the products of the project"),
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
