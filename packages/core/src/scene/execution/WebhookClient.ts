/**
 * Port: carries webhooks out of the cloud.
 */
import { Context, type Effect, Schema } from "effect"
import type { WebhookMethod } from "../definition/Scene.ts"

export interface WebhookRequest {
  readonly url: string
  readonly method: WebhookMethod
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Until the connection stands, milliseconds. */
  readonly connectTimeout: number
  /** For all of it, milliseconds. */
  readonly requestTimeout: number
}

export interface WebhookResponse {
  readonly status: number
  /** The beginning of the answer as text, at most {@link maxResponse} bytes of it. */
  readonly body: string
}

/** Bytes of an answer that are read. */
export const maxResponse = 16 * 1024

/** There was no answer. */
export class WebhookError extends Schema.TaggedError<WebhookError>()("WebhookError", {
  /** `forbidden`: the address is not one that webhooks may reach. */
  reason: Schema.Literals(["forbidden", "unreachable", "timeout"]),
  message: Schema.String
}) {}

/** The server option that lets webhooks reach loopback, link-local and private addresses. */
export const AllowPrivateWebhooks = Context.Reference<boolean>(
  "@device-cloud/core/scene/execution/AllowPrivateWebhooks",
  {
    defaultValue: () => false
  }
)

/**
 * Laws: unless {@link AllowPrivateWebhooks}, no byte reaches a loopback,
 * link-local, private or otherwise special address, whatever name or notation
 * stands for it: what counts is the address that is connected to. Redirects are
 * answers, and not followed.
 */
export class WebhookClient extends Context.Service<WebhookClient, {
  /** Why no webhook may go to the URL, as far as it shows without asking for names. */
  readonly refuse: (url: string) => string | undefined
  readonly send: (request: WebhookRequest) => Effect.Effect<WebhookResponse, WebhookError>
}>()("@device-cloud/core/scene/execution/WebhookClient") {}
