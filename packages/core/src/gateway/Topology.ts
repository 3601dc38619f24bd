/**
 * Topology: which sub-devices reach the cloud through which gateway
 * (docs/api/gateways.md).
 */
import { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { Text } from "../kernel/Text.ts"

/** Sub-devices that one gateway has at most. */
export const maxSubDevices = 1500

/**
 * A time in which a gateway looks for sub-devices. Sub-devices that it gains in
 * this time are members of the session.
 */
export interface AddSession {
  readonly sessionId: string
  readonly projectId: ProjectId
  readonly gatewayId: DeviceId
  /** The products whose sub-devices may join; empty: all products. */
  readonly productKeys: ReadonlyArray<ProductKey>
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Unix milliseconds. */
  readonly endsAt: number
}

/** Returns whether sub-devices of the product may join in the session. */
export const admits = ({ productKeys }: AddSession, productKey: ProductKey): boolean =>
  productKeys.length === 0 || productKeys.includes(productKey)

/** How long an add-session can be read after its end, milliseconds. */
export const sessionMemoryMillis = 86_400_000

/** What an application decides about an add-session. */
export const AddSessionDraft = Schema.Struct({
  /** Seconds; default, also of 0: 60. */
  timeout: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3600 }))),
  /** At most 100 products whose sub-devices may join; empty or absent: all products. */
  productKeys: Schema.optional(Schema.Array(Text(128).pipe(Schema.brand("ProductKey"))).check(Schema.isMaxLength(100)))
})
export interface AddSessionDraft extends Schema.Schema.Type<typeof AddSessionDraft> {}

/** A sub-device that the application adds, with the signature of the sub-device (docs/protocol/signatures.md). */
export const SignedSubDevice = Schema.Struct({
  deviceName: Text(128),
  productKey: Text(128),
  signMethod: Schema.Literals(["hmacmd5", "hmacsha1"]),
  /** Of the text `deviceName…productKey…` under the secret of the sub-device; hex of either case. */
  sign: Schema.String
})

/** 1 to 1,500 sub-devices. */
export const SignedSubDevices = Schema.Array(SignedSubDevice).check(
  Schema.isBetweenLength(1, maxSubDevices)
)
export type SignedSubDevices = typeof SignedSubDevices.Type

/** 1 to 1,500 names. */
export const SubDeviceNames = Schema.Array(
  Schema.Struct({ deviceName: Text(128), productKey: Text(128) })
).check(Schema.isBetweenLength(1, maxSubDevices))
export type SubDeviceNames = typeof SubDeviceNames.Type

/** The device's product is not of node type `gateway`. */
export class NotAGateway extends DomainError<NotAGateway>()(
  "NotAGateway",
  {
    deviceId: Schema.String
  },
  ({ deviceId }) => `Device ${deviceId} is no gateway: its product is of another node type`
) {}

/** The product is not of node type `gateway-sub`. */
export class NotASubDevice extends DomainError<NotASubDevice>()(
  "NotASubDevice",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `Product ${productKey} is not of node type gateway-sub: its devices join no gateway`
) {}

/** The gateway has no such add-session, or it ended more than a day ago. */
export class AddSessionNotFound extends DomainError<AddSessionNotFound>()(
  "AddSessionNotFound",
  {
    gatewayId: Schema.String,
    sessionId: Schema.String
  },
  ({ gatewayId, sessionId }) => `Gateway ${gatewayId} has no add-session ${sessionId}`
) {}

/** The add-session is not open any more. */
export class AddSessionEnded extends DomainError<AddSessionEnded>()(
  "AddSessionEnded",
  {
    sessionId: Schema.String
  },
  ({ sessionId }) => `Add-session ${sessionId} has ended; start another one`
) {}

/** The sub-device belongs to another gateway. */
export class BelongsToOtherGateway extends DomainError<BelongsToOtherGateway>()(
  "BelongsToOtherGateway",
  {
    /** Product key and name. */
    device: Schema.String
  },
  ({ device }) => `Device ${device} belongs to another gateway; remove it there first`
) {}

/** The gateway has no such sub-device. */
export class NotInTopology extends DomainError<NotInTopology>()(
  "NotInTopology",
  {
    gatewayId: Schema.String,
    /** Product key and name. */
    device: Schema.String
  },
  ({ device, gatewayId }) => `Device ${device} is no sub-device of gateway ${gatewayId}`
) {}

/** The gateway would have more than {@link maxSubDevices}. */
export class TooManySubDevices extends DomainError<TooManySubDevices>()(
  "TooManySubDevices",
  {
    gatewayId: Schema.String
  },
  ({ gatewayId }) => `Gateway ${gatewayId} would have more than ${maxSubDevices} sub-devices`
) {}
