/**
 * Devices: identified by the triple product key, device name, device secret.
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import { PreviousSecret } from "../kernel/RotatedSecret.ts"
import { isWellFormed, Text } from "../kernel/Text.ts"
import {
  type AuthType,
  type NodeType,
  type Product,
  ProductKey,
  type UplinkSignature,
  type ValidateType
} from "../product/Product.ts"
import { ProjectId } from "../project/Project.ts"

export const DeviceId = Schema.String.pipe(Schema.brand("DeviceId"))
export type DeviceId = typeof DeviceId.Type

export const DeviceName = Schema.String.pipe(Schema.brand("DeviceName"))
export type DeviceName = typeof DeviceName.Type

/** A device name that the caller of the management API chooses. */
const ChosenName = Schema.String.check(
  Schema.isPattern(/^[\w\-@.:]{4,32}$/u, { expected: "4 to 32 letters, digits and - _ @ . :" })
)

/** Whether a device is connected; `unactive` until its first authenticated connection. */
export const DeviceStatus = Schema.Literals(["online", "offline", "unactive"])
export type DeviceStatus = typeof DeviceStatus.Type

/** The account through which a cloud gateway connects for a device. Only products with data source 3 have it. */
export const CloudGatewayAccount = Schema.Struct({
  clientId: Schema.String,
  username: Schema.String,
  password: Schema.String,
  deviceUuid: Schema.String
})
export interface CloudGatewayAccount extends Schema.Schema.Type<typeof CloudGatewayAccount> {}

/** Tags on one device, at most. */
export const maxTags = 50

/** The tags of a device, key to value: at most 50, keys of 1 to 100 characters, values of at most 128. */
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
  /** Positive; a later device has a greater one. */
  id: Schema.Int,
  deviceId: DeviceId,
  projectId: ProjectId,
  productKey: ProductKey,
  deviceName: DeviceName,
  deviceSecret: Schema.String,
  /** The secret before; null: there is none. */
  previousSecret: Schema.NullOr(PreviousSecret),
  nickname: Text(128),
  status: DeviceStatus,
  /** Grows by one with each change of `status`. */
  statusVersion: Schema.Int,
  /** When `status` last changed, Unix milliseconds; null: never. */
  statusChangedAt: Schema.NullOr(Schema.Int),
  /** False: the device cannot connect. */
  enabled: Schema.Boolean,
  /** Whether the application has bound the device to a user. */
  bound: Schema.Boolean,
  /** The batch of the device; 0: none. */
  batchId: Schema.Int,
  /** The address of the latest connection, or empty. */
  ip: Schema.String,
  /** The firmware version of the module `default`, or empty. */
  firmwareVersion: Schema.String,
  timeZone: Schema.String,
  cloudGateway: Schema.NullOr(CloudGatewayAccount),
  /**
   * The name that the device gave when it registered, mostly its hardware
   * address; empty: the device registered by its device name; null: the device
   * has not registered.
   */
  mac: Schema.NullOr(Schema.String),
  /** Whether the cloud asks the device for its logs. */
  diagnosisEnabled: Schema.Boolean,
  /** At most {@link maxTags}. */
  tags: Schema.Record(Schema.String, Schema.String),
  /** The first authenticated connection, Unix milliseconds; null: none yet. */
  activatedAt: Schema.NullOr(Schema.Int),
  /** Unix milliseconds. */
  createdAt: Schema.Int,
  /** The latest change through the management API, Unix milliseconds. */
  updatedAt: Schema.Int
})
export interface Device extends Schema.Schema.Type<typeof Device> {}

/** A device before it is stored. All other fields start at their neutral values. */
export type NewDevice = Pick<
  Device,
  "deviceId" | "deviceName" | "deviceSecret" | "nickname" | "batchId" | "cloudGateway" | "createdAt"
>

/** A device and its product. */
export interface DeviceDetail {
  readonly device: Device
  readonly product: Product
}

/** What transports and the message path know of an authenticated device. */
export interface DeviceIdentity {
  readonly deviceId: DeviceId
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  readonly validateType: typeof ValidateType.Type
}

/** What the store knows to check the proof of a device. */
export interface StoredCredentials {
  readonly identity: DeviceIdentity
  readonly deviceSecret: string
  readonly previousSecret: PreviousSecret | null
  readonly enabled: boolean
  /** How the devices of the product reach the cloud. */
  readonly nodeType: NodeType
  /** How the devices of the product prove who they are. */
  readonly authType: AuthType
  /** What signatures of the devices must cover over HTTP. */
  readonly uplinkSignature: UplinkSignature
}

/** The identity of a stored device. */
export const deviceIdentity = ({ device, product }: DeviceDetail): DeviceIdentity => ({
  deviceId: device.deviceId,
  projectId: device.projectId,
  productKey: device.productKey,
  deviceName: device.deviceName,
  validateType: product.validateType
})

/**
 * What the caller decides about a new device (docs/api/devices.md). Only devices
 * of cloud-gateway products have the last four fields.
 */
export const DeviceDraft = Schema.Struct({
  /** Unique in the product: 4 to 32 letters, digits and - _ @ . : Default: the cloud makes one. */
  deviceName: Schema.optional(ChosenName),
  nickname: Schema.optional(Text(128)),
  clientid: Schema.optional(Text(256)),
  username: Schema.optional(Text(256)),
  password: Schema.optional(Text(256)),
  cloudGtwDeviceUuid: Schema.optional(Text(256))
})
export interface DeviceDraft extends Schema.Schema.Type<typeof DeviceDraft> {}

/** What the caller may change of a device. */
export const DeviceChanges = Schema.Struct({ nickname: Text(128) })
export interface DeviceChanges extends Schema.Schema.Type<typeof DeviceChanges> {}

/** Devices in one batch, at most. */
export const maxBatchSize = 10_000

/** What the caller decides about a new batch: how many devices, or their names. */
export const BatchDraft = Schema.Struct({
  num: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxBatchSize }))),
  /** 1 to 10,000 different names, as `deviceName` of a device; as many as `num` if both are given. */
  deviceNames: Schema.optional(Schema.Array(ChosenName)),
  desc: Schema.optional(Text(1024))
}).check(Schema.makeFilter(({ deviceNames, num }) => {
  if (deviceNames === undefined) {
    return num === undefined ? { path: ["num"], issue: "Expected the number of devices, or device_names" } : undefined
  }
  const refuse = (issue: string) => ({ path: ["deviceNames"], issue })
  if (deviceNames.length === 0 || deviceNames.length > maxBatchSize) {
    return refuse(`Expected 1 to ${maxBatchSize} names`)
  }
  if (num !== undefined && num !== deviceNames.length) return refuse(`Expected as many names as num, ${num}`)
  const seen = new Set<string>()
  for (const name of deviceNames) {
    if (seen.has(name)) return refuse(`Expected each name once; ${name} is there twice`)
    seen.add(name)
  }
  return undefined
}))
export interface BatchDraft extends Schema.Schema.Type<typeof BatchDraft> {}

/** Devices that were created together. */
export interface Batch {
  /** Positive; a later batch has a greater one. */
  readonly batchId: number
  readonly productKey: ProductKey
  /** Devices that were created with the batch, removed ones included. */
  readonly size: number
  readonly description: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** The product has no such batch. */
export class BatchNotFound extends DomainError<BatchNotFound>()(
  "BatchNotFound",
  {
    productKey: Schema.String,
    batchId: Schema.Int
  },
  ({ batchId, productKey }) => `Product ${productKey} has no batch ${batchId}`
) {}

/** Devices of the product have these names already; nothing was stored. */
export class DeviceNamesTaken extends DomainError<DeviceNamesTaken>()(
  "DeviceNamesTaken",
  {
    productKey: Schema.String,
    deviceNames: Schema.NonEmptyArray(Schema.String)
  },
  ({ deviceNames: [first, ...rest], productKey }) =>
    `Product ${productKey} has a device ${first}` +
    (rest.length === 0 ? "" : `, and devices of ${rest.length} more of these names`)
) {}

/** Product key and device name as one text, unique to the device. */
export const deviceKey = (
  { deviceName, productKey }: { readonly productKey: string; readonly deviceName: string }
): string => `${productKey}/${deviceName}`

/** Names a device by its id, or by product key and name. */
export type DeviceReference =
  | { readonly deviceId: DeviceId }
  | { readonly productKey: ProductKey; readonly deviceName: DeviceName }

/** The project has no such device. */
export class DeviceNotFound extends DomainError<DeviceNotFound>()(
  "DeviceNotFound",
  {
    /** The id, or product key and name, of the call. */
    device: Schema.String
  },
  ({ device }) => `There is no device ${device}`
) {
  static of(reference: DeviceReference): DeviceNotFound {
    // A program may give an id that is no text.
    return new DeviceNotFound({
      device: "deviceId" in reference ? String(reference.deviceId) : deviceKey(reference)
    })
  }
}

/** The device is disabled. Of those who connect as the device, only one with a right proof learns this. */
export class DeviceDisabled extends DomainError<DeviceDisabled>()(
  "DeviceDisabled",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) => `Device ${productKey}/${deviceName} is disabled`
) {}

/** Says that the input names devices that the project does not have; of more than 100, the first. */
export const unknownDevices = (deviceIds: ReadonlyArray<string>): InvalidInput => {
  const [first = "", ...rest] = deviceIds.slice(0, 100)
  const issue = (deviceId: string) => ({
    path: ["deviceIds"],
    message: `Expected devices of the project; ${deviceId} is none`
  })
  return new InvalidInput({ issues: [issue(first), ...rest.map(issue)] })
}

/**
 * The product is no cloud gateway, but the call has fields of a cloud gateway
 * (`clientid`, `username`, `password`, `cloud_gtw_device_uuid`); or the product is
 * a cloud gateway, and the call creates a batch (`num`, `device_names`).
 */
export class NotACloudGateway extends DomainError<NotACloudGateway>()(
  "NotACloudGateway",
  {
    productKey: Schema.String,
    /** The fields that the product does not admit. */
    fields: Schema.NonEmptyArray(Schema.String)
  },
  ({ fields, productKey }) =>
    `${fields.join(", ")}: ` + (fields.some((field) => field in BatchDraft.fields)
      ? `product ${productKey} is a cloud gateway, whose devices each need an account; create them one by one`
      : `only a cloud-gateway product takes this, and product ${productKey} is none`)
) {}
