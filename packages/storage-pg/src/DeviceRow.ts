/**
 * Devices as rows of PostgreSQL, alone or with their product.
 */
import type {
  CloudGatewayAccount,
  Device,
  DeviceDetail,
  DeviceId,
  DeviceIdentity,
  DeviceName,
  DeviceStatus,
  ProductKey,
  ProjectId
} from "@device-cloud/core"
import type { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf, previousSecretFromRow } from "./SecretColumns.ts"
import { type PrefixedProductRow, productColumns, productFromPrefixedRow } from "./ProductRow.ts"

export interface DeviceRow {
  readonly id: bigint
  readonly device_id: string
  readonly project_id: string
  readonly product_key: string
  readonly device_name: string
  readonly device_secret: string
  readonly previous_secret: string | null
  readonly previous_secret_until: Date | null
  readonly cloud_gateway_password: string | null
  readonly sealed_with: number
  readonly nickname: string
  readonly enabled: boolean
  readonly bound: boolean
  readonly batch_id: bigint
  /** With its password only if the row is not sealed. */
  readonly cloud_gateway: Omit<CloudGatewayAccount, "password"> & { readonly password?: string } | null
  readonly firmware_version: string
  readonly mac: string | null
  readonly diagnosis_enabled: boolean
  readonly tags: Readonly<Record<string, string>>
  readonly time_zone: string
  readonly status: string
  readonly status_version: bigint
  readonly status_changed_at: Date | null
  readonly activated_at: Date | null
  readonly ip: string
  readonly created_at: Date
  readonly updated_at: Date
}

export const deviceFromRow = (secrets: SealedSecrets["Service"], row: DeviceRow): Device => ({
  id: Number(row.id),
  deviceId: row.device_id as DeviceId,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  deviceSecret: deviceSecretFromRow(secrets, row),
  previousSecret: previousDeviceSecretFromRow(secrets, row),
  nickname: row.nickname,
  status: row.status as DeviceStatus,
  statusVersion: Number(row.status_version),
  statusChangedAt: row.status_changed_at?.getTime() ?? null,
  enabled: row.enabled,
  bound: row.bound,
  batchId: Number(row.batch_id),
  ip: row.ip,
  firmwareVersion: row.firmware_version,
  timeZone: row.time_zone,
  mac: row.mac,
  diagnosisEnabled: row.diagnosis_enabled,
  tags: row.tags,
  cloudGateway: cloudGatewayFromRow(secrets, row),
  activatedAt: row.activated_at?.getTime() ?? null,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime()
})

/** The columns of the secrets with which a device signs. */
export type DeviceSecretRow = Pick<
  DeviceRow,
  "device_id" | "device_secret" | "previous_secret" | "previous_secret_until" | "sealed_with"
>

export const deviceSecretFromRow = (
  { open }: SealedSecrets["Service"],
  row: Pick<DeviceRow, "device_id" | "device_secret" | "sealed_with">
): string => open(row.sealed_with, row.device_secret, placeOf("device", row.device_id, "device_secret"))

export const previousDeviceSecretFromRow = (secrets: SealedSecrets["Service"], row: DeviceSecretRow) =>
  previousSecretFromRow(
    secrets,
    row.sealed_with,
    row.previous_secret,
    row.previous_secret_until,
    "device",
    row.device_id
  )

const cloudGatewayFromRow = (
  { open }: SealedSecrets["Service"],
  { cloud_gateway, cloud_gateway_password, device_id, sealed_with }: DeviceRow
): CloudGatewayAccount | null => {
  if (cloud_gateway === null) return null
  const { clientId, deviceUuid, password = "", username } = cloud_gateway
  return {
    clientId,
    username,
    password: cloud_gateway_password === null
      ? password
      : open(sealed_with, cloud_gateway_password, placeOf("device", device_id, "cloud_gateway_password")),
    deviceUuid
  }
}

export interface IdentityRow {
  readonly device_id: string
  readonly project_id: string
  readonly product_key: string
  readonly device_name: string
  readonly validate_type: string
}

/** The select list of {@link IdentityRow}, for the tables `device` and `product`. */
export const identityColumns =
  "device.device_id, device.project_id, device.product_key, device.device_name, product.validate_type"

export const identityFromRow = (row: IdentityRow): DeviceIdentity => ({
  deviceId: row.device_id as DeviceId,
  projectId: row.project_id as ProjectId,
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName,
  validateType: row.validate_type as DeviceIdentity["validateType"]
})

/** A device row with the columns of its product, each with the prefix `product__`. */
export type DeviceDetailRow = DeviceRow & PrefixedProductRow

/** The select list of {@link DeviceDetailRow}, for the tables `device` and `product`. */
export const deviceDetailColumns = `device.*, ${
  productColumns.map((column) => `product.${column} AS product__${column}`).join(", ")
}`

export const deviceDetailFromRow = (secrets: SealedSecrets["Service"], row: DeviceDetailRow): DeviceDetail => ({
  device: deviceFromRow(secrets, row),
  product: productFromPrefixedRow(secrets, row)
})
