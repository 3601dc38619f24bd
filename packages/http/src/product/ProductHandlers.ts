/**
 * Handlers of the routes of products.
 */
import { type Product, Products } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { ProductInfo } from "./ProductApi.ts"

/** Implements the group `products`. */
export const layer = group(
  Api,
  "products",
  Effect.fnUntraced(function*(handlers) {
    const products = yield* Products
    return handlers.handleAll({
      createProduct: ({ payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(products.create(projectId, toCamelCase(payload)), oneProduct)),
      listProducts: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => products.list(projectId, page), productInfo)
        ),
      getProduct: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(products.get(projectId, params.product_key), oneProduct)),
      updateProduct: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(products.update(projectId, params.product_key, toCamelCase(payload)))
        ),
      deleteProduct: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(products.remove(projectId, params.product_key))),
      setProductStatus: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(products.setStatus(projectId, params.product_key, payload.status)))
    })
  })
)

const productInfo = (product: Product): typeof ProductInfo.Type => ({
  id: product.id,
  project_id: product.projectId,
  product_key: product.productKey,
  product_secret: product.productSecret,
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

const oneProduct = (product: Product) => ({ product_info: productInfo(product) })
