/**
 * Objects: files that applications and devices fetch by an address that nobody
 * can guess (specification, Object storage; decisions, section 14).
 */
import { Schema } from "effect"
import type { ProjectId } from "../project/Project.ts"

export interface StoredObject {
  /** 32 characters, the secret part of its address. */
  readonly objectId: string
  readonly projectId: ProjectId
  /** See {@link safeFileName}. */
  readonly fileName: string
  /** Bytes. */
  readonly size: number
  /** Lower-case hex. */
  readonly md5: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** What the paths of the addresses of objects begin with (decisions, section 14). */
export const objectsPath = "/objects"

const addressPattern = new RegExp(`^https?://[^/?#]+${objectsPath}/([A-Za-z0-9]{32})/([^/?#]+)$`, "i")

/** The object that an address would be that of; whether there is one is another question. */
export const parseAddress = (address: string): Pick<StoredObject, "objectId" | "fileName"> | undefined => {
  const [, objectId, fileName] = addressPattern.exec(address) ?? []
  return objectId === undefined || fileName === undefined ? undefined : { objectId, fileName }
}

/** In bytes, unless it is configured otherwise: 512 MiB. */
export const defaultMaxObjectSize = 512 * 1024 * 1024

/** There is no such object, or not in this project. */
export class ObjectNotFound extends Schema.TaggedError<ObjectNotFound>()("ObjectNotFound", {
  objectId: Schema.String
}) {}

export class ObjectTooLarge extends Schema.TaggedError<ObjectTooLarge>()("ObjectTooLarge", {
  /** Bytes that an object may have. */
  maximum: Schema.Int
}) {}

const maxFileNameLength = 100

/** A name without path, of letters, digits and `. _ -`, that does not begin with a dot; for what is left of others, `file`. */
export const safeFileName = (name: string): string => {
  const [base = ""] = name.split(/[/\\]/).slice(-1)
  const safe = base.normalize("NFC").replaceAll(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+/, "")
  return safe.slice(-maxFileNameLength).replace(/^[._]+/, "") || "file"
}
