/**
 * Products as rows of PostgreSQL.
 */
import type { Product, ProductKey, ProjectId } from "@device-cloud/core"
import type { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf, previousSecretFromRow } from "./SecretColumns.ts"

export interface ProductRow {
  readonly id: bigint
  readonly project_id: string
  readonly product_key: string
  readonly product_secret: string
  readonly previous_secret: string | null
  readonly previous_secret_until: Date | null
  readonly sealed_with: number
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
  readonly uplink_signature: string
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
  "previous_secret",
  "previous_secret_until",
  "sealed_with",
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
  "uplink_signature",
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

const productSecret = (
  { open }: SealedSecrets["Service"],
  sealedWith: number,
  text: string,
  productKey: string
): string => open(sealedWith, text, placeOf("product", productKey, "product_secret"))

/** The product in a row of something that belongs to it, for example a device. */
export const productFromPrefixedRow = (secrets: SealedSecrets["Service"], row: PrefixedProductRow): Product => ({
  id: Number(row.product__id),
  projectId: row.product__project_id as ProjectId,
  productKey: row.product__product_key as ProductKey,
  productSecret: productSecret(
    secrets,
    row.product__sealed_with,
    row.product__product_secret,
    row.product__product_key
  ),
  previousSecret: previousSecretFromRow(
    secrets,
    row.product__sealed_with,
    row.product__previous_secret,
    row.product__previous_secret_until,
    "product",
    row.product__product_key
  ),
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
  uplinkSignature: row.product__uplink_signature as Product["uplinkSignature"],
  dataSource: row.product__data_source as Product["dataSource"],
  platform: row.product__platform as Product["platform"],
  platformName: row.product__platform_name,
  dynamicRegister: row.product__dynamic_register,
  status: row.product__status as Product["status"],
  createdAt: row.product__created_at.getTime(),
  updatedAt: row.product__updated_at.getTime()
})

export const productFromRow = (secrets: SealedSecrets["Service"], row: ProductRow): Product => ({
  id: Number(row.id),
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  productSecret: productSecret(secrets, row.sealed_with, row.product_secret, row.product_key),
  previousSecret: previousSecretFromRow(
    secrets,
    row.sealed_with,
    row.previous_secret,
    row.previous_secret_until,
    "product",
    row.product_key
  ),
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
  uplinkSignature: row.uplink_signature as Product["uplinkSignature"],
  dataSource: row.data_source as Product["dataSource"],
  platform: row.platform as Product["platform"],
  platformName: row.platform_name,
  dynamicRegister: row.dynamic_register,
  status: row.status as Product["status"],
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})
