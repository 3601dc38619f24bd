/**
 * Products as rows of PostgreSQL.
 */
import type { Product, ProductKey, ProjectId } from "@device-cloud/core"

export interface ProductRow {
  readonly id: bigint
  readonly project_id: string
  readonly product_key: string
  readonly product_secret: string
  readonly name: string
  readonly description: string
  readonly photo_url: string
  readonly device_type: string
  readonly node_type: string
  readonly network_type: string
  readonly protocol_type: string
  readonly validate_type: string
  readonly data_format: string
  readonly auth_type: string
  readonly data_source: number
  readonly platform: number
  readonly platform_name: string
  readonly dynamic_register: boolean
  readonly status: string
  readonly created_at: Date
  readonly updated_at: Date
}

/** All columns of the table. */
export const productColumns = [
  "id",
  "project_id",
  "product_key",
  "product_secret",
  "name",
  "description",
  "photo_url",
  "device_type",
  "node_type",
  "network_type",
  "protocol_type",
  "validate_type",
  "data_format",
  "auth_type",
  "data_source",
  "platform",
  "platform_name",
  "dynamic_register",
  "status",
  "created_at",
  "updated_at"
] as const satisfies ReadonlyArray<keyof ProductRow>

/** A product row whose columns have the prefix `product__`. */
export type PrefixedProductRow = { readonly [Column in keyof ProductRow as `product__${Column}`]: ProductRow[Column] }

/** The product in a row of something that belongs to it, for example a device. */
export const productFromPrefixedRow = (row: PrefixedProductRow): Product => ({
  id: Number(row.product__id),
  projectId: row.product__project_id as ProjectId,
  productKey: row.product__product_key as ProductKey,
  productSecret: row.product__product_secret,
  name: row.product__name,
  description: row.product__description,
  photoUrl: row.product__photo_url,
  deviceType: row.product__device_type,
  nodeType: row.product__node_type as Product["nodeType"],
  networkType: row.product__network_type as Product["networkType"],
  protocolType: row.product__protocol_type as Product["protocolType"],
  validateType: row.product__validate_type as Product["validateType"],
  dataFormat: row.product__data_format as Product["dataFormat"],
  authType: row.product__auth_type as Product["authType"],
  dataSource: row.product__data_source as Product["dataSource"],
  platform: row.product__platform as Product["platform"],
  platformName: row.product__platform_name,
  dynamicRegister: row.product__dynamic_register,
  status: row.product__status as Product["status"],
  createdAt: row.product__created_at.getTime(),
  updatedAt: row.product__updated_at.getTime()
})

export const productFromRow = (row: ProductRow): Product => ({
  id: Number(row.id),
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  productSecret: row.product_secret,
  name: row.name,
  description: row.description,
  photoUrl: row.photo_url,
  deviceType: row.device_type,
  nodeType: row.node_type as Product["nodeType"],
  networkType: row.network_type as Product["networkType"],
  protocolType: row.protocol_type as Product["protocolType"],
  validateType: row.validate_type as Product["validateType"],
  dataFormat: row.data_format as Product["dataFormat"],
  authType: row.auth_type as Product["authType"],
  dataSource: row.data_source as Product["dataSource"],
  platform: row.platform as Product["platform"],
  platformName: row.platform_name,
  dynamicRegister: row.dynamic_register,
  status: row.status as Product["status"],
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})
