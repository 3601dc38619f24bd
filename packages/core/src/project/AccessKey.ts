/**
 * Access keys: the credentials of the management API. A key belongs to one
 * project and carries one role, which scopes can narrow; the store keeps only its SHA-256.
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { NonBlankText } from "../kernel/Text.ts"
import { AddressRanges, type KeyRights, KeyScopes } from "./KeyRights.ts"
import { ProjectId } from "./Project.ts"
import { Role } from "./Role.ts"

export interface AccessKey extends KeyRights {
  /** The 12 characters between `dck_` and the secret. */
  readonly id: string
  readonly projectId: ProjectId
  readonly name: string
  /** Lower-case hex SHA-256 of the whole key. */
  readonly hash: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The key that created this one; null: none did, as for the owner's key. */
  readonly createdBy: string | null
  /** The latest use, Unix milliseconds, exact to a minute or two; null: none yet. */
  readonly lastUsedAt: number | null
}

/** What the caller decides about a new key. */
export const AccessKeyDraft = Schema.Struct({
  name: NonBlankText(128),
  /** Without `owner`: `AccessKeys.setOwner` sets the owner's key. */
  role: Role.pick(["viewer", "operator", "admin"]),
  /** Unix milliseconds. Absent: as the creator's; never if there is none. */
  expiresAt: Schema.optional(Schema.Int),
  /** Absent: as the creator's; all if there is none. */
  scopes: Schema.optional(KeyScopes),
  /** Absent: as the creator's; from everywhere if there is none. */
  addresses: Schema.optional(AddressRanges)
})
export type AccessKeyDraft = typeof AccessKeyDraft.Type

/** Who is calling: the project and the rights of the presented key. */
export interface Principal extends KeyRights {
  readonly accessKeyId: string
  readonly accessKeyName: string
  readonly projectId: ProjectId
}

/** How long before its end a key ends soon, milliseconds: two weeks. */
const soonMillis = 14 * 86_400_000

/** Whether a key ends soon, or has ended. `expiresAt` and `now`: Unix milliseconds. */
export const expiresSoon = (expiresAt: number | null, now: number): boolean =>
  expiresAt !== null && expiresAt - now <= soonMillis

/** `dck_`, 12 characters of id, `_`, 32 bytes in base64url. */
const keyPattern = /^dck_([A-Za-z0-9]{12})_[A-Za-z0-9_-]{43}$/

/** Returns the id inside a well-formed key; undefined for any other text. */
export const accessKeyIdOf = (key: string): string | undefined => keyPattern.exec(key)?.[1]

/** A configured key does not have the form `dck_<12 characters>_<43 characters>`. */
export class MalformedAccessKey extends Schema.TaggedError<MalformedAccessKey>()("MalformedAccessKey", {}) {
  override readonly message =
    "An access key is dck_, 12 letters or digits, _, and 43 characters of base64url (32 random bytes)"
}

/** The key whose id a refused key carries. */
const NamedAccessKey = Schema.Struct({
  accessKeyId: Schema.String,
  accessKeyName: Schema.String,
  projectId: ProjectId
})
export type NamedAccessKey = typeof NamedAccessKey.Type

/** No key, a malformed one, or one that the store does not know. */
export class UnknownAccessKey extends DomainError<UnknownAccessKey>()(
  "UnknownAccessKey",
  {
    /** There is a key with this id, and the secret is another. */
    named: Schema.optional(NamedAccessKey)
  },
  ({ named }) =>
    named === undefined ? "The access key is unknown" : `Access key ${named.accessKeyId} has another secret`
) {}

/** The key was valid until `expiredAt`. */
export class AccessKeyExpired extends DomainError<AccessKeyExpired>()(
  "AccessKeyExpired",
  {
    /** Unix milliseconds. */
    expiredAt: Schema.Finite,
    named: NamedAccessKey
  },
  ({ named }) => `Access key ${named.accessKeyId} has expired`
) {}

/** A key cannot give a right that it does not have. */
export class RightsExceeded extends DomainError<RightsExceeded>()(
  "RightsExceeded",
  {
    /** The field of the draft that asks for more. */
    field: Schema.String
  },
  ({ field }) => `${field}: an access key cannot give a right that it does not have itself`
) {}

/** The project has no key with this id. */
export class AccessKeyNotFound extends DomainError<AccessKeyNotFound>()(
  "AccessKeyNotFound",
  {
    accessKeyId: Schema.String
  },
  ({ accessKeyId }) => `There is no access key ${accessKeyId} in this project`
) {}

/** The key is the owner's: it can only be replaced. */
export class AccessKeyNotRemovable extends DomainError<AccessKeyNotRemovable>()(
  "AccessKeyNotRemovable",
  {
    accessKeyId: Schema.String
  },
  ({ accessKeyId }) => `Access key ${accessKeyId} is the owner's; it can only be replaced`
) {}
