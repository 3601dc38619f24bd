/**
 * Firmware: the images that devices of a product can be upgraded to
 * (specification, Firmware; decisions, section 10).
 */
import { Schema } from "effect"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import { NonBlankText, Text } from "../../kernel/Text.ts"

/** 0 pending verification, 1 verifying, 2 verification succeeded, 3 verification failed, 4 cancelled. */
export const FirmwareStatus = Schema.Literals([0, 1, 2, 3, 4])
export type FirmwareStatus = typeof FirmwareStatus.Type

/** The module that a device has always. */
export const defaultModule = "default"

export const ModuleName = Schema.String.check(
  Schema.isPattern(/^[\w.-]{1,64}$/, { expected: "1 to 64 letters, digits and _ . -" })
)

/** Three numbers, and what follows them after `-` or `.`; at most 32 characters. */
export const FirmwareVersion = Schema.String.check(
  Schema.isPattern(/^(?=.{1,32}$)\d+\.\d+\.\d+(?:[-.][0-9A-Za-z.-]+)?$/, {
    expected: "x.y.z, optionally followed by - or . and letters, digits, . or -, at most 32 characters"
  })
)

/** What the maker of a firmware decides. */
export const FirmwareDraft = Schema.Struct({
  name: NonBlankText(128),
  version: FirmwareVersion,
  /** Where devices download it: `http` or `https`. */
  ossPath: Text(2048).check(Schema.isPattern(/^https?:\/\/[^\s/]+\S*$/i, { expected: "an http or https address" })),
  /** 1: md5. */
  algorithms: Schema.Literals([1]),
  hash: Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/i, { expected: "32 hex digits" })),
  remark: Schema.optional(Text(1024)),
  module: Schema.optional(ModuleName),
  /** Bytes. By default that of the file, if it is stored in this cloud; else 0, not known. */
  size: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 - 1 })))
})
export interface FirmwareDraft extends Schema.Schema.Type<typeof FirmwareDraft> {}

export interface Firmware {
  /** Positive; grows with each firmware. */
  readonly firmwareId: number
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly name: string
  /** Unique with product and module. */
  readonly version: string
  readonly ossPath: string
  readonly algorithms: 1
  /** Lower-case hex. */
  readonly hash: string
  readonly size: number
  readonly remark: string
  readonly module: string
  readonly status: FirmwareStatus
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

export type NewFirmware = Omit<Firmware, "firmwareId">

export interface FirmwareDetail {
  readonly firmware: Firmware
  readonly productName: string
  /** Whether it has an unfinished verify or upgrade task. */
  readonly ongoing: boolean
}

/** All given conditions must hold. */
export interface FirmwareFilter {
  readonly productKey?: ProductKey | undefined
  /** What its name contains. */
  readonly name?: string | undefined
}

export class FirmwareNotFound extends Schema.TaggedError<FirmwareNotFound>()("FirmwareNotFound", {
  firmwareId: Schema.Int
}) {}

/** The product has a firmware of this version for this module. */
export class FirmwareVersionTaken extends Schema.TaggedError<FirmwareVersionTaken>()("FirmwareVersionTaken", {
  productKey: Schema.String,
  module: Schema.String,
  version: Schema.String
}) {}

/** The state of the firmware does not allow this. */
export class FirmwareState extends Schema.TaggedError<FirmwareState>()("FirmwareState", {
  firmwareId: Schema.Int,
  /** A sentence. */
  reason: Schema.String
}) {}
