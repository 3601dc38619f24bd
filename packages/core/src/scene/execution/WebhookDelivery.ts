/**
 * Sends signed webhooks at the pace of their hosts and addresses, one attempt at
 * a time (docs/api/scenes.md).
 */
import { Clock, Context, Effect, Layer, Metric } from "effect"
import { given } from "../../kernel/GivenEffect.ts"
import { Mac } from "../../kernel/Mac.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { beginning } from "../../kernel/Text.ts"
import type { ProjectId } from "../../project/Project.ts"
import { type Webhook, webhookRequest } from "./Webhook.ts"
import { WebhookClient, type WebhookError, type WebhookResponse } from "./WebhookClient.ts"
import { type WebhookAddresses, WebhookPace, webhookTarget } from "./WebhookPace.ts"
import { WebhookSigning } from "./WebhookSigning.ts"

/** The webhook was not sent: its host gets as many as it may. */
export interface PutOffWebhook {
  readonly _tag: "PutOff"
  /** When its turn comes, Unix milliseconds. */
  readonly until: number
  /** A sentence. */
  readonly detail: string
}

/** What became of an attempt. `Undeliverable`: the project is gone; `detail` is a sentence. */
export type WebhookOutcome =
  | { readonly _tag: "Answered"; readonly response: WebhookResponse }
  | { readonly _tag: "Unanswered"; readonly error: WebhookError }
  | PutOffWebhook
  | { readonly _tag: "Undeliverable"; readonly detail: string }

export class WebhookDelivery extends Context.Service<WebhookDelivery, {
  /** Signs the webhook with the keys of the project and sends it, unless its target gets enough already. */
  readonly send: (projectId: ProjectId, webhook: Webhook) => Effect.Effect<WebhookOutcome, StoreError>
}>()("@device-cloud/core/scene/execution/WebhookDelivery") {
  static readonly layer: Layer.Layer<
    WebhookDelivery,
    never,
    WebhookClient | WebhookPace | WebhookSigning | Mac
  > = Layer.effect(WebhookDelivery, Effect.suspend(() => make))
}

/** How much of the response to a webhook an outcome shows, in UTF-16 code units. */
const maxShownBody = 200

/** A sentence about a response. */
export const shownResponse = ({ body, status }: WebhookResponse): string =>
  isSuccess(status) || body === ""
    ? `Answered with ${status}`
    : `Answered with ${status}: ${beginning(body, maxShownBody)}`

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

const putOffWebhooks = Metric.counter("device_cloud_webhooks_put_off_total", {
  description: "Webhooks that were put off because their host gets enough already",
  incremental: true
})

const make = Effect.gen(function*() {
  const client = yield* WebhookClient
  const pace = yield* WebhookPace
  const signing = yield* WebhookSigning
  const mac = yield* Mac
  const clock = yield* Clock.Clock

  const send = Effect.fnUntraced(function*(projectId: ProjectId, webhook: Webhook) {
    const keys = yield* signing.keys(projectId)
    const now = clock.currentTimeMillisUnsafe()
    const target = webhookTarget(projectId, webhook.url)
    const putOff = (until: number): Effect.Effect<WebhookOutcome> =>
      Effect.as(Metric.update(putOffWebhooks, 1), {
        _tag: "PutOff",
        until,
        detail: `Waits for its turn: ${target.host} gets as many webhooks as it may`
      })
    const until = pace.take(target, now, webhook.hasWaited)
    if (until !== null) return yield* putOff(until)
    let reached: WebhookAddresses | undefined
    let addressUntil: number | null = null
    let isOver = false
    // The look-up of a name takes time, and may end after the request.
    const admits = (addresses: ReadonlyArray<string>) => {
      if (isOver) return false
      addressUntil = pace.take({ projectId, addresses }, clock.currentTimeMillisUnsafe(), webhook.hasWaited)
      if (addressUntil === null) reached = { projectId, addresses }
      return addressUntil === null
    }
    const send = () => client.send(webhookRequest(webhook, { keys, mac, now, admits }))
    return yield* given("send of the WebhookClient", send).pipe(
      Effect.ensuring(Effect.sync(() => {
        isOver = true
        pace.done(target)
        if (reached !== undefined) pace.done(reached)
      })),
      Effect.map((response): WebhookOutcome => ({ _tag: "Answered", response })),
      Effect.catch((error): Effect.Effect<WebhookOutcome> =>
        addressUntil === null ? Effect.succeed({ _tag: "Unanswered", error }) : putOff(addressUntil)
      )
    )
  })

  return WebhookDelivery.of({
    send: (projectId, webhook) =>
      Effect.catchTag(
        send(projectId, webhook),
        "ProjectNotFound",
        ({ message }) => Effect.succeed<WebhookOutcome>({ _tag: "Undeliverable", detail: message })
      )
  })
})
