/**
 * Handlers of the routes of products.
 */
import { type Product, Products, type ProductTemplate, productTemplates } from "@device-cloud/core"
import { Effect, type Schema } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import type { Caller } from "../middleware/Caller.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { ProductInfo, TemplateRecord } from "./ProductApi.ts"

/** Implements the group `products`. */
export const layer = group(
  Api,
  "products",
  Effect.fnUntraced(function*(handlers) {
    const products = yield* Products
    return handlers.handleAll({
      createProduct: ({ payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(products.create(caller.projectId, toCamelCase(payload)), oneProduct(caller))
        ),
      listProducts: ({ query }) =>
        CurrentPrincipal.use((caller) =>
          respondPage(query, (page) => products.list(caller.projectId, page), productInfo(caller))
        ),
      listProductTemplates: () =>
        respond(Effect.succeed(productTemplates), (templates) => ({ results: templates.map(templateRecord) })),
      getProduct: ({ params }) =>
        CurrentPrincipal.use((caller) =>
          respond(products.get(caller.projectId, params.product_key), oneProduct(caller))
        ),
      updateProduct: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(products.update(projectId, params.product_key, toCamelCase(payload)))
        ),
      rotateProductSecret: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            products.rotateSecret(projectId, params.product_key, payload ?? {}),
            ({ previousSecret, productSecret }) => ({
              product_secret: productSecret,
              previous_valid_until: dateText(previousSecret?.until ?? null)
            })
          )
        ),
      deleteProduct: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(products.remove(projectId, params.product_key))),
      setProductStatus: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(products.setStatus(projectId, params.product_key, payload.status)))
    })
  })
)

const productInfo = (caller: Caller) => (product: Product): typeof ProductInfo.Type => ({
  id: product.id,
  project_id: product.projectId,
  product_key: product.productKey,
  product_secret: caller.reveal(product.productSecret),
  name: product.name,
  description: product.description,
  photo_url: product.photoUrl,
  device_type: product.deviceType,
  node_type: product.nodeType,
  network_type: product.networkType,
  protocol_type: product.protocolType,
  validate_type: product.validateType,
  data_format: product.dataFormat,
  auth_type: product.authType,
  uplink_signature: product.uplinkSignature,
  dynamic_register: product.dynamicRegister,
  status: product.status,
  platform: product.platform,
  platform_name: product.platformName,
  data_source: product.dataSource,
  configuration: "",
  register_at: "",
  created_at: dateText(product.createdAt),
  updated_at: dateText(product.updatedAt)
})

const oneProduct = (caller: Caller) => (product: Product) => ({ product_info: productInfo(caller)(product) })

const templateRecord = (
  { description, name, product, templateId, thingModel }: ProductTemplate
): typeof TemplateRecord.Type => ({
  template_id: templateId,
  name,
  description,
  product: {
    node_type: product.nodeType,
    network_type: product.networkType ?? "",
    protocol_type: product.protocolType ?? "",
    validate_type: product.validateType,
    data_format: product.dataFormat,
    auth_type: product.authType
  },
  thing_model: thingModel as unknown as Readonly<Record<string, Schema.Json>>
})
