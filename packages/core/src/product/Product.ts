/**
 * Products: the kinds of device that a project knows.
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { PreviousSecret } from "../kernel/RotatedSecret.ts"
import { NonBlankText, Text } from "../kernel/Text.ts"
import { ProjectId } from "../project/Project.ts"

export const ProductKey = Schema.String.pipe(Schema.brand("ProductKey"))
export type ProductKey = typeof ProductKey.Type

/** How the devices of a product reach the cloud: directly, as a gateway, or through a gateway. */
export const NodeType = Schema.Literals(["direct", "gateway", "gateway-sub"])
export type NodeType = typeof NodeType.Type

/** The network of the devices; empty for `gateway-sub`. */
export const NetworkType = Schema.Literals([
  "wifi",
  "ethernet",
  "cellular",
  "lorawan",
  "others",
  "wifi+ble-mesh",
  ""
])

/** The protocol between gateway and sub-device; empty for `direct` and `gateway`. */
export const ProtocolType = Schema.Literals(["zigbee", "ble", "ble-mesh", ""])

/** What the cloud does with reported values that do not fit the thing model: `none` stores them, `weak` drops them. */
export const ValidateType = Schema.Literals(["none", "weak"])

/** The payload of the devices. `raw`: bytes, which the cloud shows as hex text. */
export const DataFormat = Schema.Literals(["json", "raw"])

/**
 * How the devices prove who they are. `secret`: they sign with their device secret;
 * `certificate`: they present a client certificate.
 */
export const AuthType = Schema.Literals(["secret", "certificate"])
export type AuthType = typeof AuthType.Type

/**
 * What the signature of a message over HTTP must cover: `any` as little as the
 * names and the random; `timestamped` also a timestamp and the body, and each
 * random counts once.
 */
export const UplinkSignature = Schema.Literals(["any", "timestamped"])
export type UplinkSignature = typeof UplinkSignature.Type

export const ProductStatus = Schema.Literals(["developing", "released"])
export type ProductStatus = typeof ProductStatus.Type

/** 0 or 1: local device, 2: cloud-to-cloud integrated device, 3: cloud gateway device. */
export const DataSource = Schema.Literals([0, 1, 2, 3])

/** 0 or 1: local platform device; 2, 3, 4: devices of three distinct external cloud platforms. */
export const Platform = Schema.Literals([0, 1, 2, 3, 4])

const editable = {
  name: NonBlankText(128),
  dynamicRegister: Schema.Boolean,
  photoUrl: Text(2048),
  description: Text(2048)
}

export const Product = Schema.Struct({
  /** Positive; a later product has a greater one. */
  id: Schema.Int,
  projectId: ProjectId,
  productKey: ProductKey,
  productSecret: Schema.String,
  /** The secret before; null: there is none. */
  previousSecret: Schema.NullOr(PreviousSecret),
  ...editable,
  deviceType: Text(128),
  nodeType: NodeType,
  networkType: NetworkType,
  protocolType: ProtocolType,
  validateType: ValidateType,
  dataFormat: DataFormat,
  authType: AuthType,
  uplinkSignature: UplinkSignature,
  dataSource: DataSource,
  platform: Platform,
  platformName: Text(128),
  status: ProductStatus,
  /** Unix milliseconds. */
  createdAt: Schema.Int,
  /** Unix milliseconds. */
  updatedAt: Schema.Int
})
export interface Product extends Schema.Schema.Type<typeof Product> {}

/** A product before it is stored: the store assigns the id; there is no previous secret. */
export type NewProduct = Omit<Product, "id" | "previousSecret">

/** What the caller decides about a new product (docs/api/products.md). */
export const ProductDraft = Schema.Struct({
  name: editable.name,
  nodeType: NodeType,
  networkType: Schema.optional(NetworkType),
  protocolType: Schema.optional(ProtocolType),
  validateType: ValidateType,
  dataFormat: DataFormat,
  authType: AuthType,
  uplinkSignature: Schema.optional(UplinkSignature),
  dynamicRegister: Schema.optional(editable.dynamicRegister),
  photoUrl: Schema.optional(editable.photoUrl),
  description: Schema.optional(editable.description),
  deviceType: Schema.optional(Text(128)),
  dataSource: Schema.optional(DataSource),
  platform: Schema.optional(Platform),
  platformName: Schema.optional(Text(128))
}).check(
  Schema.makeFilter(({ authType, networkType = "", nodeType, protocolType = "" }) => {
    const issues: Array<Schema.FilterIssue> = []
    const refuse = (path: string, issue: string) => issues.push({ path: [path], issue })
    if (nodeType === "direct" && networkType === "") {
      refuse("networkType", "Expected a network type for direct devices")
    }
    if (nodeType === "gateway-sub" && networkType !== "") {
      refuse("networkType", "Expected no network type for sub-devices of a gateway")
    }
    if (nodeType === "gateway-sub" && protocolType === "") {
      refuse("protocolType", "Expected a protocol type for sub-devices of a gateway")
    }
    if (nodeType === "gateway-sub" && authType === "certificate") {
      refuse("authType", "Expected secret: sub-devices connect through a gateway, without a certificate")
    }
    if (nodeType !== "gateway-sub" && protocolType !== "") {
      refuse("protocolType", "Expected no protocol type: only sub-devices of a gateway have one")
    }
    return issues
  })
)
export interface ProductDraft extends Schema.Schema.Type<typeof ProductDraft> {}

/** The fields that can change after creation (docs/api/products.md). What is optional and absent stays unchanged. */
export const ProductUpdate = Schema.Struct({
  name: editable.name,
  dynamicRegister: editable.dynamicRegister,
  photoUrl: editable.photoUrl,
  description: Schema.optional(editable.description),
  /** A change counts for all devices within a minute. */
  uplinkSignature: Schema.optional(UplinkSignature)
})
export interface ProductUpdate extends Schema.Schema.Type<typeof ProductUpdate> {}

/** The project has no such product. */
export class ProductNotFound extends DomainError<ProductNotFound>()(
  "ProductNotFound",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `There is no product ${productKey}`
) {}

/** The product has devices and cannot be removed. */
export class ProductHasDevices extends DomainError<ProductHasDevices>()(
  "ProductHasDevices",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `Product ${productKey} still has devices; delete them first`
) {}
