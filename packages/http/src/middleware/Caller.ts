/**
 * Who calls the management API, and which secrets a response may show to them.
 */
import { type Principal, roleIncludes } from "@device-cloud/core"
import { Effect, type Redacted } from "effect"
import { Unauthorized } from "../project/ProjectFailures.ts"

/** Who was authenticated, and by what. */
export interface Authenticated extends Principal {
  /** The browser session that the request came with; null: it came with the access key. */
  readonly session: {
    readonly token: Redacted.Redacted
    /** Unix milliseconds. */
    readonly expiresAt: number
  } | null
  /** Completes within a second after the key or the session no longer works. */
  readonly ended: Effect.Effect<void>
}

/** The project and role of an access key during one request. */
export interface Caller extends Authenticated {
  /**
   * Returns a secret as a response shows it to the caller: `masked` for a viewer,
   * which is {@link maskedSecret} unless given. An empty text stays empty. Notes
   * that the request has shown a secret, which the audit log then tells.
   */
  readonly reveal: (secret: string, masked?: string) => string
}

/** Fails when the key or the session no longer works: what a request waits for, or goes on to send, ends then. */
export const failWhenEnded = ({ ended }: Authenticated) =>
  Effect.andThen(
    ended,
    Effect.fail(Unauthorized.make({ message: "The access key or the browser session has ended" }))
  )

/** What a viewer reads in place of a secret. */
export const maskedSecret = "********"

/** Shows the URL of a webhook. Its path and query are often secrets: a viewer reads the host alone. */
export const shownUrl = ({ reveal }: Caller, url: string): string =>
  reveal(url, URL.canParse(url) ? `${new URL(url).origin}/…` : maskedSecret)

/** Shows what a receiver of webhooks has answered. It may repeat its address: a viewer reads what stands before it. */
export const shownAnswer = ({ reveal }: Caller, detail: string): string => reveal(detail, detail.split(": ", 1)[0])

/** The lowest role that reads secrets. */
export const secretsRole = "operator"

/** Makes the caller of a request. Calls `onReveal` for each secret that is shown. */
export const makeCaller = (authenticated: Authenticated, onReveal: () => void): Caller => {
  const mayRead = roleIncludes(authenticated.role, secretsRole)
  return {
    reveal: (secret, masked = maskedSecret) => {
      if (secret === "") return ""
      if (!mayRead) return masked
      onReveal()
      return secret
    },
    // V8 copies a spread fast only when it stands last.
    ...authenticated
  }
}
