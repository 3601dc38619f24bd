/**
 * Access keys: the credentials of the management API. A key belongs to one
 * project and carries one role; the store keeps only its SHA-256.
 */
import { Schema } from "effect"
import { NonBlankText } from "../kernel/Text.ts"
import type { ProjectId } from "./Project.ts"

/**
 * What a key may do. Each role includes the ones before it: `viewer` reads,
 * `operator` changes everything but keys, `admin` manages keys, `owner`
 * manages projects.
 */
export const Role = Schema.Literals(["viewer", "operator", "admin", "owner"])
export type Role = typeof Role.Type

/** Whether `role` allows everything that `required` allows. */
export const roleIncludes = (role: Role, required: Role): boolean =>
  Role.literals.indexOf(role) >= Role.literals.indexOf(required)

export interface AccessKey {
  /** The 12 characters between `dck_` and the secret. */
  readonly id: string
  readonly projectId: ProjectId
  readonly name: string
  readonly role: Role
  /** Lower-case hex SHA-256 of the whole key. */
  readonly hash: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds; null: never. */
  readonly expiresAt: number | null
}

/** What the caller decides about a new key. */
export const AccessKeyDraft = Schema.Struct({
  name: NonBlankText(128),
  /** Without `owner`: `AccessKeys.setOwner` sets the owner's key. */
  role: Role.pick(["viewer", "operator", "admin"]),
  /** Unix milliseconds; absent: never. */
  expiresAt: Schema.optional(Schema.Int)
})
export type AccessKeyDraft = typeof AccessKeyDraft.Type

/** Who is calling: the project and role of the presented key. */
export interface Principal {
  readonly accessKeyId: string
  readonly projectId: ProjectId
  readonly role: Role
}

/** `dck_`, 12 characters of id, `_`, 32 bytes in base64url. */
const keyPattern = /^dck_([A-Za-z0-9]{12})_[A-Za-z0-9_-]{43}$/

/** Returns the id inside a well-formed key; undefined for any other text. */
export const accessKeyIdOf = (key: string): string | undefined => keyPattern.exec(key)?.[1]

/** A configured key does not have the form `dck_<12 characters>_<43 characters>`. */
export class MalformedAccessKey extends Schema.TaggedError<MalformedAccessKey>()("MalformedAccessKey", {}) {
  override readonly message =
    "An access key is dck_, 12 letters or digits, _, and 43 characters of base64url (32 random bytes)"
}

/** No key, a malformed one, or one that the store does not know. */
export class UnknownAccessKey extends Schema.TaggedError<UnknownAccessKey>()("UnknownAccessKey", {}) {}

/** The key was valid until `expiredAt`. */
export class AccessKeyExpired extends Schema.TaggedError<AccessKeyExpired>()("AccessKeyExpired", {
  /** Unix milliseconds. */
  expiredAt: Schema.Finite
}) {}

/** The project has no key with this id. */
export class AccessKeyNotFound extends Schema.TaggedError<AccessKeyNotFound>()("AccessKeyNotFound", {
  accessKeyId: Schema.String
}) {}

/** The key is the owner's: it can only be replaced. */
export class AccessKeyNotRemovable extends Schema.TaggedError<AccessKeyNotRemovable>()("AccessKeyNotRemovable", {
  accessKeyId: Schema.String
}) {}
