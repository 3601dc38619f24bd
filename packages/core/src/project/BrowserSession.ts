/**
 * Browser sessions: a browser that has shown an access key is known by a token from
 * then on. A session has no rights of its own, it stands for its key.
 */
import type { Redacted } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import type { Principal } from "./AccessKey.ts"

/** A session as the store keeps it. */
export interface BrowserSession {
  /** Lower-case hex SHA-256 of the token. */
  readonly hash: string
  readonly accessKeyId: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds; not later than the end of the key. */
  readonly expiresAt: number
}

/** A session that has just begun. */
export interface StartedSession {
  /** 32 random bytes in base64url: 43 characters. */
  readonly token: Redacted.Redacted
  /** Unix milliseconds. */
  readonly expiresAt: number
}

/** Who is signed in. */
export interface SignedIn {
  /** As the access key itself gives it. */
  readonly principal: Principal
  /** When the session ends, Unix milliseconds. */
  readonly expiresAt: number
}

const tokenPattern = /^[A-Za-z0-9_-]{43}$/

/** Whether a text has the form of a token. */
export const isSessionToken = (text: string): boolean => tokenPattern.test(text)

/** There is no session with this token: it has ended, or never began. */
export class UnknownBrowserSession extends DomainError<UnknownBrowserSession>()(
  "UnknownBrowserSession",
  {},
  () => "The browser session has ended or is unknown"
) {}
