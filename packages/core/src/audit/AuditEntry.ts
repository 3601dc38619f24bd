/**
 * Entries of the audit log: who did what, on what, from where, and what came of
 * it (docs/api/audit.md). An entry holds no secret and no body of a request.
 */

/** What an action is about, for example a device by its id. */
export interface AuditResource {
  /** For example `product` or `device`; empty: none. */
  readonly kind: string
  /** Empty: none, or not known when the entry was stored. */
  readonly id: string
}

/** What is known of an action before it is carried out. */
export interface AuditSubject {
  /** The project of the caller. */
  readonly projectId: string
  /** The id of the caller's access key; empty: the program itself. */
  readonly keyId: string
  /** The name of the access key at that time. */
  readonly keyName: string
  /** The operation, for example `createDevice`. */
  readonly action: string
  readonly resource: AuditResource
  /** The network address of the caller; empty: not known. */
  readonly address: string
  /** The id of the request; empty: none. */
  readonly requestId: string
}

/** The claim of a request with an idempotency key, in the project of the caller. */
export interface RequestClaim {
  readonly key: string
  /** When it was claimed, Unix milliseconds. */
  readonly at: number
}

/** An entry before it is stored. */
export interface NewAuditEntry extends AuditSubject {
  /** Unix milliseconds. */
  readonly at: number
  /** 0: the action was carried out. Another: the code with which it was refused or failed. */
  readonly result: number
  /** The claim of the request with an idempotency key that was carried out; it is no part of the log. */
  readonly claim?: RequestClaim | undefined
}

export interface AuditEntry extends Omit<NewAuditEntry, "claim"> {
  /** Below 2^53. Unique; it grows from entry to entry of one node. */
  readonly id: number
}

/** Selects entries. All given fields must hold. */
export interface AuditFilter {
  readonly keyId?: string | undefined
  readonly action?: string | undefined
  /** The id of the resource. */
  readonly resource?: string | undefined
  /** Unix milliseconds, included. */
  readonly start?: number | undefined
  /** Unix milliseconds, not included. */
  readonly end?: number | undefined
}

/** The place of an entry in the log. */
export type AuditCursor = Pick<AuditEntry, "at" | "id">
