/**
 * Rows of products and devices, which several stores read.
 */
import type {
  Device,
  DeviceDetail,
  DeviceId,
  DeviceIdentity,
  DeviceName,
  DeviceStatus,
  Product,
  ProductKey,
  ProjectId
} from "@device-cloud/core"
import { previousSecretOf, type Secrets } from "./Secrets.ts"
import type { Statements } from "./Sqlite.ts"

export interface ProductRow {
  readonly id: number
  readonly project_id: string
  readonly product_key: string
  readonly product_secret: string
  readonly previous_secret: string | null
  readonly previous_secret_until: number | null
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
  readonly dynamic_register: number
  readonly status: string
  readonly created_at: number
  readonly updated_at: number
}

export const productFromRow = (secrets: Secrets["Service"], row: ProductRow): Product => ({
  id: row.id,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  productSecret: secrets.open(row.product_secret, ["product", row.product_key, "product_secret"]),
  previousSecret: previousSecretOf(secrets, row, ["product", row.product_key]),
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
  dynamicRegister: row.dynamic_register === 1,
  status: row.status as Product["status"],
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

export interface DeviceRow {
  readonly id: number
  readonly device_id: string
  readonly project_id: string
  readonly product_key: string
  readonly device_name: string
  readonly device_secret: string
  readonly previous_secret: string | null
  readonly previous_secret_until: number | null
  readonly cloud_gateway_password: string | null
  readonly nickname: string
  readonly enabled: number
  readonly bound: number
  readonly batch_id: number
  readonly cloud_gateway: string | null
  readonly firmware_version: string
  readonly mac: string | null
  readonly diagnosis_enabled: number
  readonly tags: string
  readonly time_zone: string
  readonly status: string
  readonly status_version: number
  readonly status_changed_at: number | null
  readonly activated_at: number | null
  readonly ip: string
  readonly created_at: number
  readonly updated_at: number
}

export const deviceSecretOf = (
  { open }: Secrets["Service"],
  row: Pick<DeviceRow, "device_id" | "device_secret">
): string => open(row.device_secret, ["device", row.device_id, "device_secret"])

export const deviceFromRow = (secrets: Secrets["Service"], row: DeviceRow): Device => ({
  id: row.id,
  deviceId: row.device_id as DeviceId,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  deviceSecret: deviceSecretOf(secrets, row),
  previousSecret: previousSecretOf(secrets, row, ["device", row.device_id]),
  nickname: row.nickname,
  status: row.status as DeviceStatus,
  statusVersion: row.status_version,
  statusChangedAt: row.status_changed_at,
  enabled: row.enabled === 1,
  bound: row.bound === 1,
  batchId: row.batch_id,
  ip: row.ip,
  firmwareVersion: row.firmware_version,
  timeZone: row.time_zone,
  mac: row.mac,
  diagnosisEnabled: row.diagnosis_enabled === 1,
  tags: JSON.parse(row.tags),
  cloudGateway: row.cloud_gateway === null || row.cloud_gateway_password === null ? null : {
    ...JSON.parse(row.cloud_gateway),
    password: secrets.open(row.cloud_gateway_password, ["device", row.device_id, "cloud_gateway_password"])
  },
  activatedAt: row.activated_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at
})

/** Devices with their products, of which each is read once. */
export const deviceDetails = (
  sql: Statements,
  secrets: Secrets["Service"],
  rows: ReadonlyArray<DeviceRow>
): ReadonlyArray<DeviceDetail> => {
  const products = new Map<string, Product>()
  const productOf = (productKey: string) => {
    const known = products.get(productKey)
    if (known !== undefined) return known
    const product = productFromRow(
      secrets,
      sql.get<ProductRow>("SELECT * FROM product WHERE product_key = ?", [productKey])!
    )
    products.set(productKey, product)
    return product
  }
  return rows.map((row) => ({ device: deviceFromRow(secrets, row), product: productOf(row.product_key) }))
}

export interface IdentityRow {
  readonly device_id: string
  readonly project_id: string
  readonly product_key: string
  readonly device_name: string
  readonly validate_type: string
}

/** The columns of {@link IdentityRow}, of `device JOIN product USING (product_key)`. */
export const identityColumns =
  "device.device_id, device.project_id, device.product_key, device.device_name, product.validate_type"

export const identityFromRow = (row: IdentityRow): DeviceIdentity => ({
  deviceId: row.device_id as DeviceId,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  validateType: row.validate_type as DeviceIdentity["validateType"]
})
