/**
 * Firmware: the images that devices of a product can be upgraded to. See
 * docs/api/firmware.md.
 */
import { Schema } from "effect"
import { DomainError } from "../../kernel/DomainError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import { NonBlankText, Text } from "../../kernel/Text.ts"
import type { SigningAlgorithm } from "./ImageSignatures.ts"

/**
 * How far a verification has come. A verify task has this status, and its
 * firmware takes it over.
 */
export type VerificationStatus = "verifying" | "passed" | "failed" | "cancelled"

/** The status of the newest verification, or `unverified` before the first one. */
export type FirmwareStatus = "unverified" | VerificationStatus

/** The statuses of firmware that a verify task may try. */
export const verifiable: ReadonlyArray<FirmwareStatus> = ["unverified", "failed", "cancelled"]

/** The module that every device has. */
export const defaultModule = "default"

/** The module that a message or request is about. Public device SDKs send an empty name for the default one. */
export const moduleNamed = (name: string | undefined): string =>
  name === undefined || name === "" ? defaultModule : name

/** A part of a device that has its own version: 1 to 64 letters, digits and `_ . -`. */
export const ModuleName = Schema.String.check(
  Schema.isPattern(/^[\w.-]{1,64}$/u, { expected: "1 to 64 letters, digits and _ . -" })
)

/** Three numbers, and what follows them after `-` or `.`; at most 32 characters. */
export const FirmwareVersion = Schema.String.check(
  Schema.isPattern(/^(?=.{1,32}$)\d+\.\d+\.\d+(?:[-.][0-9A-Za-z.-]+)?$/u, {
    expected: "x.y.z, optionally followed by - or . and letters, digits, . or -, at most 32 characters"
  })
)

/** What a user gives to create a firmware. */
export const FirmwareDraft = Schema.Struct({
  name: NonBlankText(128),
  version: FirmwareVersion,
  /** Where devices download it: `http` or `https`. */
  ossPath: Text(2048).check(Schema.isPattern(/^https?:\/\/[^\s/]+\S*$/i, { expected: "an http or https address" })),
  /** The digest algorithm of `hash`. */
  algorithms: Schema.Literal("md5"),
  hash: Schema.String.check(Schema.isPattern(/^[0-9A-Fa-f]{32}$/u, { expected: "32 hex digits" })),
  /** SHA-256 of the file. Devices get it in place of the MD5. An empty text leaves it out. */
  sha256: Schema.optional(
    Schema.String.check(Schema.isPattern(/^(?:[0-9A-Fa-f]{64})?$/u, { expected: "64 hex digits" }))
  ),
  /** Of the file, by the signing key of the product, in base64. Needed if, and only if, the product has one. */
  signature: Schema.optional(Text(2048)),
  remark: Schema.optional(Text(1024)),
  /** Default, also of an empty name: `default`. */
  module: Schema.optional(Schema.Union([ModuleName, Schema.Literal("")])),
  /** Bytes. Default: the size of the file, if this cloud stores it, else 0 for "not known". */
  size: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 - 1 })))
})
export interface FirmwareDraft extends Schema.Schema.Type<typeof FirmwareDraft> {}

/** The signature of a firmware's file, which has been checked. */
export interface FirmwareSignature {
  /** Base64. */
  readonly signature: string
  /** Names the public key, as `ImageKey` does. */
  readonly keyId: string
  readonly algorithm: SigningAlgorithm
}

export interface Firmware {
  /** Positive; a newer firmware has a greater one. */
  readonly firmwareId: number
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly name: string
  /** Unique with product and module. */
  readonly version: string
  readonly ossPath: string
  readonly algorithms: "md5"
  /** Lower-case hex. */
  readonly hash: string
  /** SHA-256, lower-case hex; empty: none was given. */
  readonly sha256: string
  /** Null: the firmware is not signed. */
  readonly signed: FirmwareSignature | null
  /** Bytes; 0: not known. */
  readonly size: number
  readonly remark: string
  readonly module: string
  readonly status: FirmwareStatus
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** A firmware that the store has not numbered yet. */
export type NewFirmware = Omit<Firmware, "firmwareId">

/** A firmware with what the API shows beside it. */
export interface FirmwareDetail {
  readonly firmware: Firmware
  readonly productName: string
  /** Whether it has a verify or upgrade task that has not ended. */
  readonly ongoing: boolean
}

/** All given conditions must hold. */
export interface FirmwareFilter {
  readonly productKey?: ProductKey | undefined
  /** A part of the name. */
  readonly name?: string | undefined
}

/** The project has no such firmware. */
export class FirmwareNotFound extends DomainError<FirmwareNotFound>()(
  "FirmwareNotFound",
  {
    firmwareId: Schema.Int
  },
  ({ firmwareId }) => `There is no firmware ${firmwareId} in this project`
) {}

/** The product already has a firmware of this version for this module. */
export class FirmwareVersionTaken extends DomainError<FirmwareVersionTaken>()(
  "FirmwareVersionTaken",
  {
    productKey: Schema.String,
    module: Schema.String,
    version: Schema.String
  },
  ({ module, productKey, version }) => `Product ${productKey} has a firmware ${version} for module ${module}`
) {}

/** The state of the firmware does not allow the operation. */
export class FirmwareState extends DomainError<FirmwareState>()(
  "FirmwareState",
  {
    firmwareId: Schema.Int,
    /** A sentence. */
    reason: Schema.String
  },
  ({ firmwareId, reason }) => `Firmware ${firmwareId}: ${reason}`
) {}
