/**
 * Devices: identified by the triple product key, device name, device secret.
 */
import { Schema } from "effect"
import { type Product, ProductKey, type ValidateType } from "../product/Product.ts"
import { ProjectId } from "../project/Project.ts"
import { isWellFormed, Text } from "../kernel/Text.ts"

export const DeviceId = Schema.String.pipe(Schema.brand("DeviceId"))
export type DeviceId = typeof DeviceId.Type

export const DeviceName = Schema.String.pipe(Schema.brand("DeviceName"))
export type DeviceName = typeof DeviceName.Type

/** `unactive` until the first authenticated connection. */
export const DeviceStatus = Schema.Literals(["online", "offline", "unactive"])
export type DeviceStatus = typeof DeviceStatus.Type

/** How a cloud gateway reaches the cloud on behalf of a device (products with data source 3). */
export const CloudGatewayAccount = Schema.Struct({
  clientId: Schema.String,
  username: Schema.String,
  password: Schema.String,
  deviceUuid: Schema.String
})
export interface CloudGatewayAccount extends Schema.Schema.Type<typeof CloudGatewayAccount> {}

/** Tags on one device. */
export const maxTags = 50

/** Key to value. */
export const Tags = Schema.Record(Schema.String, Text(128)).check(
  Schema.makeFilter((tags) => {
    const keys = Object.keys(tags)
    if (keys.length > maxTags) return `Expected at most ${maxTags} tags`
    return keys.every(isTagKey) ? undefined : "Expected keys of 1 to 100 characters that are not blank"
  })
)

const isTagKey = (key: string): boolean =>
  key.trim() !== "" && key.length <= 100 && key !== "__proto__" && isWellFormed(key)

export const Device = Schema.Struct({
  /** Positive; grows with each device. */
  id: Schema.Int,
  deviceId: DeviceId,
  projectId: ProjectId,
  productKey: ProductKey,
  deviceName: DeviceName,
  deviceSecret: Schema.String,
  nickname: Text(128),
  status: DeviceStatus,
  /** Grows by one with each change of `status`. */
  statusVersion: Schema.Int,
  /** When `status` last changed, Unix milliseconds; null: never. */
  statusChangedAt: Schema.NullOr(Schema.Int),
  /** A disabled device cannot connect. */
  enabled: Schema.Boolean,
  /** Bound to a user by the application. */
  bound: Schema.Boolean,
  /** 0: in no batch. */
  batchId: Schema.Int,
  /** The address of its latest connection, or empty. */
  ip: Schema.String,
  /** The version of the module `default`, or empty. */
  firmwareVersion: Schema.String,
  timeZone: Schema.String,
  cloudGateway: Schema.NullOr(CloudGatewayAccount),
  /**
   * What it named itself by when it registered, mostly its hardware address;
   * empty: it registered by its device name; null: it has not registered.
   */
  mac: Schema.NullOr(Schema.String),
  /** Whether the device is asked for its logs. */
  diagnosisEnabled: Schema.Boolean,
  /** At most {@link maxTags}. */
  tags: Schema.Record(Schema.String, Schema.String),
  /** Its first authenticated connection, Unix milliseconds; null: none yet. */
  activatedAt: Schema.NullOr(Schema.Int),
  /** Unix milliseconds. */
  createdAt: Schema.Int,
  /** The latest change through management calls, Unix milliseconds. */
  updatedAt: Schema.Int
})
export interface Device extends Schema.Schema.Type<typeof Device> {}

/** A device that has not been stored yet; everything else starts at its neutral value. */
export type NewDevice = Pick<
  Device,
  "deviceId" | "deviceName" | "deviceSecret" | "nickname" | "batchId" | "cloudGateway" | "createdAt"
>

/** A device with the product that it belongs to. */
export interface DeviceDetail {
  readonly device: Device
  readonly product: Product
}

/** What a transport and the message path need to know of a device that has proved who it is. */
export interface DeviceIdentity {
  readonly deviceId: DeviceId
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  readonly validateType: typeof ValidateType.Type
}

/** What a device is checked against. */
export interface StoredCredentials {
  readonly identity: DeviceIdentity
  readonly deviceSecret: string
  readonly enabled: boolean
}

export const deviceIdentity = ({ device, product }: DeviceDetail): DeviceIdentity => ({
  deviceId: device.deviceId,
  projectId: device.projectId,
  productKey: device.productKey,
  deviceName: device.deviceName,
  validateType: product.validateType
})

/**
 * What the maker of a device decides (specification, Devices: POST things).
 * The last four apply to cloud-gateway products only.
 */
export const DeviceDraft = Schema.Struct({
  nickname: Schema.optional(Text(128)),
  clientid: Schema.optional(Text(256)),
  username: Schema.optional(Text(256)),
  password: Schema.optional(Text(256)),
  cloudGtwDeviceUuid: Schema.optional(Text(256))
})
export interface DeviceDraft extends Schema.Schema.Type<typeof DeviceDraft> {}

/** Devices in one batch. */
export const maxBatchSize = 10_000

/** Devices that are made together. */
export const BatchDraft = Schema.Struct({
  num: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxBatchSize })),
  desc: Schema.optional(Text(1024))
})
export interface BatchDraft extends Schema.Schema.Type<typeof BatchDraft> {}

export interface Batch {
  /** Positive; grows with each batch. */
  readonly batchId: number
  readonly productKey: ProductKey
  /** Devices that were made with it. */
  readonly size: number
  readonly description: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

export class BatchNotFound extends Schema.TaggedError<BatchNotFound>()("BatchNotFound", {
  productKey: Schema.String,
  batchId: Schema.Int
}) {}

/** All given conditions must hold. */
export interface DeviceFilter {
  readonly productKey?: ProductKey | undefined
  readonly batchId?: number | undefined
  readonly enabled?: boolean | undefined
  readonly status?: DeviceStatus | undefined
  /** Key and value of a tag. */
  readonly tag?: readonly [key: string, value: string] | undefined
  /** What its name or its nickname begins with. */
  readonly keyword?: string | undefined
}

/** Product key and name, as one text that no other device has. */
export const deviceKey = (
  { deviceName, productKey }: { readonly productKey: string; readonly deviceName: string }
): string => `${productKey}/${deviceName}`

/** Names a device by its id, or by product key and name. */
export type DeviceReference =
  | { readonly deviceId: DeviceId }
  | { readonly productKey: ProductKey; readonly deviceName: DeviceName }

export class DeviceNotFound extends Schema.TaggedError<DeviceNotFound>()("DeviceNotFound", {
  /** The id, or product key and name, that was asked for. */
  device: Schema.String
}) {
  static of(reference: DeviceReference): DeviceNotFound {
    return new DeviceNotFound({
      device: "deviceId" in reference ? reference.deviceId : deviceKey(reference)
    })
  }
}

/** `clientid`, `username`, `password`, `cloud_gtw_device_uuid` were given for a product that is no cloud gateway. */
export class NotACloudGateway extends Schema.TaggedError<NotACloudGateway>()("NotACloudGateway", {
  productKey: Schema.String,
  fields: Schema.NonEmptyArray(Schema.String)
}) {}
