/**
 * Objects: files that applications and devices download from an address that
 * nobody can guess (docs/api/objects.md).
 */
import { Schema } from "effect"
import { DomainError, shortened } from "../kernel/DomainError.ts"
import type { ProjectId } from "../project/Project.ts"

export interface StoredObject {
  /** 32 characters, the secret part of the address. */
  readonly objectId: string
  readonly projectId: ProjectId
  /** As {@link safeFileName} returns it. */
  readonly fileName: string
  /** Bytes. */
  readonly size: number
  /** MD5 of the content, lower-case hex. */
  readonly md5: string
  /** SHA-256 of the content, lower-case hex. Objects from before it was kept lack it. */
  readonly sha256?: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Whether the quota of the project counts its bytes. Objects from before quotas lack it. */
  readonly isCounted?: boolean
}

/** Whether an object may have this id. Any other text may be no path, key or parameter of a store. */
export const isObjectId = (text: string): boolean => /^[A-Za-z0-9]{16,64}$/.test(text)

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The beginning of the path in the address of an object. */
export const objectsPath = "/objects"

const addressPattern = new RegExp(`^https?://[^/?#]+${objectsPath}/([A-Za-z0-9]{32})/([^/?#]+)$`, "i")

/**
 * Reads object id and file name from an address. Returns undefined if the text is
 * no address of an object. The object need not exist.
 */
export const parseAddress = (address: string): Pick<StoredObject, "objectId" | "fileName"> | undefined => {
  const [, objectId, fileName] = addressPattern.exec(address) ?? []
  return objectId === undefined || fileName === undefined ? undefined : { objectId, fileName }
}

/** The default of `MaxObjectSize`, bytes: 512 MiB. */
export const defaultMaxObjectSize = 512 * 1024 * 1024

/** There is no such object, or it belongs to another project. */
export class ObjectNotFound extends DomainError<ObjectNotFound>()(
  "ObjectNotFound",
  {
    objectId: Schema.String
  },
  ({ objectId }) => `There is no object ${shortened(objectId)}`
) {}

/** Something needs the object, so that it cannot be removed. */
export class ObjectInUse extends DomainError<ObjectInUse>()(
  "ObjectInUse",
  {
    objectId: Schema.String,
    /** What needs it. */
    reason: Schema.String
  },
  ({ objectId, reason }) => `Object ${shortened(objectId)} cannot be deleted: ${reason}`
) {}

/** The content has more than `maximum` bytes. */
export class ObjectTooLarge extends DomainError<ObjectTooLarge>()(
  "ObjectTooLarge",
  {
    /** Bytes. */
    maximum: Schema.Int
  },
  ({ maximum }) => `The file is larger than ${maximum} bytes`
) {}

const maxFileNameLength = 100

/**
 * Makes a safe file name of at most 100 characters: takes the part after the last
 * slash, replaces each run of characters other than letters, digits and `. _ -` by
 * `_`, and drops leading dots and underscores. Returns `file` if nothing is left.
 */
export const safeFileName = (name: string): string => {
  const [base = ""] = name.split(/[/\\]/).slice(-1)
  const safe = base.normalize("NFC").replaceAll(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+/, "")
  return safe.slice(-maxFileNameLength).replace(/^[._]+/, "") || "file"
}
