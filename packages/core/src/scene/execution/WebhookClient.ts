/**
 * Port: sends webhooks out of the cloud.
 */
import { Context, type Effect, Schema } from "effect"
import type { WebhookMethod } from "../definition/Action.ts"

export interface WebhookRequest {
  readonly url: string
  readonly method: WebhookMethod
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** For making the connection, milliseconds. */
  readonly connectTimeout: number
  /** For the whole request, milliseconds. */
  readonly requestTimeout: number
  /**
   * Whether a connection may be made to one of these addresses now, each with its
   * port, such as `192.0.2.7:443` or `[2001:db8::7]:443`.
   */
  readonly admits: (addresses: ReadonlyArray<string>) => boolean
}

export interface WebhookResponse {
  readonly status: number
  /** The beginning of the response body as text, at most {@link maxResponse} bytes of it. */
  readonly body: string
}

/** How many bytes of a response body are read. */
export const maxResponse = 16 * 1024

/** There was no response. */
export class WebhookError extends Schema.TaggedError<WebhookError>()("WebhookError", {
  /** `forbidden`: the URL itself shows that webhooks may not go there. `not-admitted`: the request has admitted no connection. */
  reason: Schema.Literals(["forbidden", "not-admitted", "unreachable", "timeout"]),
  /** For whoever made the scene: names no address that a name stands for. */
  message: Schema.String
}) {}

/** Whether webhooks may reach loopback, link-local and private addresses. */
export const AllowPrivateWebhooks = Context.Reference<boolean>(
  "@device-cloud/core/scene/execution/AllowPrivateWebhooks",
  {
    defaultValue: () => false
  }
)

/**
 * Laws: unless {@link AllowPrivateWebhooks} is true, no byte reaches a loopback,
 * link-local, private or otherwise special address, whatever name or notation
 * stands for it: what counts is the address of the connection. A name that
 * stands for such an address fails exactly as a name that does not exist. The
 * client asks `admits` of the request once, before it connects, with all addresses
 * that it may connect to. It does not follow redirects: it returns them like any
 * other response.
 */
export class WebhookClient extends Context.Service<WebhookClient, {
  /** Returns why no webhook may go to the URL, as far as that shows without looking names up. */
  readonly refuse: (url: string) => string | undefined
  /**
   * Sends the request and returns the response, whatever its status. Ends within
   * `requestTimeout`: the core sets no time limit of its own.
   */
  readonly send: (request: WebhookRequest) => Effect.Effect<WebhookResponse, WebhookError>
}>()("@device-cloud/core/scene/execution/WebhookClient") {}
