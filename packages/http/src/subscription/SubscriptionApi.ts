/**
 * The routes of subscriptions (docs/api/subscriptions.md).
 */
import {
  maxEvents,
  maxWait,
  SubscriptionChanges,
  SubscriptionDraft,
  SubscriptionEvent,
  SubscriptionFilter,
  SubscriptionStart,
  SubscriptionWebhook,
  WorkerName
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { EventType } from "../events/EventApi.ts"
import { TooManyRequests } from "../Failure.ts"
import { RequiredRole, Unaudited } from "../middleware/Authorization.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProject, QuotaExceeded } from "../project/ProjectFailures.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import {
  NoSuchSubscription,
  SubscriptionLeaseLost,
  SubscriptionNameTaken,
  SubscriptionUnfit,
  TooManyWorkers
} from "./SubscriptionFailures.ts"

const { kinds: _, ...conditions } = SubscriptionFilter.fields

const Filter = Schema.Struct({
  types: Schema.optional(
    Schema.Array(EventType).check(
      Schema.makeFilter(({ length }) => length > 0 ? undefined : "Expected at least one")
    )
  ),
  ...toSnakeCase(Schema.Struct(conditions)).fields
}).annotate({
  identifier: "SubscriptionFilter",
  description: "Events that fulfil each condition; without conditions, all events"
})

const Start = SubscriptionStart.annotate({
  description: "`now`: what happens from now on; `earliest`: the oldest event that is kept; or Unix milliseconds"
})

const worker = Schema.optional(WorkerName.annotate({
  description: "The name of the worker, unique among those of the subscription; default: `default`"
}))

const Cursor = Schema.String.check(Schema.isMaxLength(128))

/** A subscription. */
export const SubscriptionInfo = Schema.Struct({
  subscription_id: Schema.Int,
  name: Schema.String,
  filter: Filter,
  webhook: Schema.NullOr(SubscriptionWebhook),
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "Subscription" })

/** A subscription, how far it is behind, and who reads it. */
export const SubscriptionDetailInfo = Schema.Struct({
  ...SubscriptionInfo.fields,
  lag: Schema.Struct({
    events: Schema.Int.annotate({ description: "Events that are not acknowledged; at most 10,000 are counted" }),
    has_more: Schema.Boolean.annotate({ description: "There may be more than were counted" }),
    oldest_at: DateText.annotate({ description: "When the oldest of them happened" }),
    oldest_age: Schema.Finite.annotate({ description: "How long ago that was, seconds; 0: there is none" }),
    gap: Schema.Boolean.annotate({ description: "Events were dropped before they were read" })
  }),
  workers: Schema.Array(Schema.Struct({
    worker: Schema.String,
    shards: Schema.Int.annotate({ description: "Its part of the devices, of 16" }),
    lease_until: DateText
  })),
  push: Schema.NullOr(Schema.Struct({
    status: Schema.Literals(["ok", "failing", "paused"]),
    failing_since: DateText,
    reason: Schema.String.annotate({ description: "Why the last attempt has failed; empty: it has not" })
  })).annotate({ description: "Null: the subscription has no webhook" })
}).annotate({ identifier: "SubscriptionDetail" })

const One = Envelope(SubscriptionInfo)

/** The group `subscriptions` of the typed client. */
export class SubscriptionApi extends HttpApiGroup.make("subscriptions").add(
  HttpApiEndpoint.post("createSubscription", "/subscriptions", {
    payload: Schema.Struct({
      ...SubscriptionDraft.fields,
      filter: Schema.optional(Filter),
      start: Schema.optional(Start)
    }).annotate({
      examples: [
        { name: "Billing", filter: { types: ["property"], property_ids: ["energy"] }, start: "earliest" }
      ]
    }),
    success: One,
    error: [NoSuchProject, SubscriptionNameTaken, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a subscription")
    .annotate(
      OpenApi.Description,
      "A reader of the project's events that keeps its place. With a `webhook`, the cloud pushes the events."
    ),
  HttpApiEndpoint.get("listSubscriptions", "/subscriptions", { query: pageQuery, success: Paged(SubscriptionInfo) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the subscriptions of the project"),
  HttpApiEndpoint.get("getSubscription", "/subscriptions/:subscription_id", {
    params: PathParams.subscription,
    success: Envelope(SubscriptionDetailInfo),
    error: NoSuchSubscription
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read a subscription with its lag"),
  HttpApiEndpoint.put("changeSubscription", "/subscriptions/:subscription_id", {
    params: PathParams.subscription,
    payload: Schema.Struct({ ...SubscriptionChanges.fields, filter: Schema.optional(Filter) }).annotate({
      examples: [{ name: "Invoices", webhook: null }]
    }),
    success: One,
    error: [NoSuchSubscription, SubscriptionNameTaken]
  }).annotate(OpenApi.Summary, "Change the name, filter or webhook of a subscription"),
  HttpApiEndpoint.delete("deleteSubscription", "/subscriptions/:subscription_id", {
    params: PathParams.subscription,
    success: EnvelopeOnly,
    error: NoSuchSubscription
  }).annotate(OpenApi.Summary, "Delete a subscription"),
  HttpApiEndpoint.get("readSubscriptionEvents", "/subscriptions/:subscription_id/events", {
    params: PathParams.subscription,
    query: {
      worker,
      cursor: Schema.optional(Cursor.annotate({
        description: "Reads on from here without acknowledging; default: after what is acknowledged"
      })),
      limit: Schema.optional(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxEvents })).annotate({
          description: `1 to ${maxEvents}; default 100`
        })
      ),
      wait: Schema.optional(
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxWait })).annotate({
          description: `Seconds to wait for an event, 0 to ${maxWait}; default 0`
        })
      )
    },
    headers: {
      accept: Schema.optional(Schema.String.annotate({ description: "`text/event-stream`: as server-sent events" })),
      "last-event-id": Schema.optional(Cursor.annotate({ description: "A stream goes on after this event" }))
    },
    success: [
      Envelope(Schema.Struct({
        results: Schema.Array(SubscriptionEvent),
        cursor: Schema.String.annotate({ description: "Acknowledges these events, or reads on after them" }),
        gap: Schema.Boolean.annotate({ description: "Events before these were dropped before they were read" })
      })),
      Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" }))
    ],
    error: [NoSuchSubscription, SubscriptionUnfit, TooManyWorkers, TooManyRequests]
  }).annotate(RequiredRole, "operator").annotate(OpenApi.Summary, "Read the events of a subscription")
    .annotate(
      OpenApi.Description,
      "The next events of the devices that the worker has. Events come again until they are acknowledged. A worker that " +
        "has neither read nor acknowledged for 10 seconds is replaced by the others. With `Accept: text/event-stream` " +
        "the events come as they happen; the `id` of each is a cursor."
    ),
  HttpApiEndpoint.post("acknowledgeSubscriptionEvents", "/subscriptions/:subscription_id/ack", {
    params: PathParams.subscription,
    payload: Schema.Struct({ cursor: Cursor, worker }).annotate({
      examples: [{ cursor: "1-0000000l3x80000000007p00001", worker: "billing-1" }]
    }),
    success: EnvelopeOnly,
    error: [NoSuchSubscription, SubscriptionUnfit, SubscriptionLeaseLost]
  }).middleware(IdempotencyMiddleware).annotate(Unaudited, true).annotate(
    OpenApi.Summary,
    "Acknowledge events up to a cursor"
  ),
  HttpApiEndpoint.post("seekSubscription", "/subscriptions/:subscription_id/seek", {
    params: PathParams.subscription,
    payload: Schema.Struct({ to: Start }).annotate({ examples: [{ to: 1795328401356 }] }),
    success: EnvelopeOnly,
    error: NoSuchSubscription
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Move a subscription to another place")
    .annotate(OpenApi.Description, "What comes after it is delivered, also if it was acknowledged before."),
  HttpApiEndpoint.post("resumeSubscription", "/subscriptions/:subscription_id/resume", {
    params: PathParams.subscription,
    success: EnvelopeOnly,
    error: [NoSuchSubscription, SubscriptionUnfit]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Push again after a pause, from where it has stopped")
).annotate(OpenApi.Title, "Subscriptions") {}
