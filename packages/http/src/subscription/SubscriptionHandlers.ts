/**
 * Handlers of the routes of subscriptions.
 */
import {
  defaultWorker,
  type DeliveredEvents,
  eventTypes,
  type Subscription,
  type SubscriptionDetail,
  subscriptionEvent,
  type SubscriptionFilter,
  SubscriptionReader,
  Subscriptions
} from "@device-cloud/core"
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { type Caller, failWhenEnded, shownAnswer, shownUrl } from "../middleware/Caller.ts"
import { endingWith } from "../middleware/EndingStream.ts"
import { snakeCase, toCamelCase } from "../SnakeCase.ts"
import * as EventStream from "./EventStream.ts"
import * as OpenReads from "./OpenReads.ts"
import type { SubscriptionDetailInfo, SubscriptionInfo } from "./SubscriptionApi.ts"

/** Implements the group `subscriptions`. */
export const layer = group(
  Api,
  "subscriptions",
  Effect.fnUntraced(function*(handlers) {
    const subscriptions = yield* Subscriptions
    const reader = yield* SubscriptionReader
    const openRead = OpenReads.make()
    return handlers.handleAll({
      createSubscription: ({ payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(subscriptions.create(caller.projectId, inDomain(payload)), info(caller))
        ),
      listSubscriptions: ({ query }) =>
        CurrentPrincipal.use((caller) =>
          respondPage(query, (page) => subscriptions.list(caller.projectId, page), info(caller))
        ),
      getSubscription: ({ params }) =>
        CurrentPrincipal.use((caller) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            respond(
              subscriptions.get(caller.projectId, params.subscription_id),
              (found) => detailInfo(caller, found, now)
            ))
        ),
      changeSubscription: ({ params, payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(subscriptions.change(caller.projectId, params.subscription_id, inDomain(payload)), info(caller))
        ),
      deleteSubscription: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(subscriptions.remove(projectId, params.subscription_id))),
      readSubscriptionEvents: Effect.fnUntraced(function*({ headers, params, query }) {
        const caller = yield* CurrentPrincipal
        const { ended, projectId } = caller
        const { cursor, limit = 100, wait = 0, worker = defaultWorker } = query
        const subscriber = { projectId, subscriptionId: params.subscription_id, worker }
        if (headers.accept?.includes("text/event-stream") !== true) {
          const read = reader.read({ ...subscriber, cursor, limit, wait: 1000 * wait })
          if (wait === 0) return yield* respond(read, page)
          yield* openRead(projectId)
          return yield* respond(Effect.raceFirst(read, failWhenEnded(caller)), page)
        }
        yield* openRead(projectId)
        // An empty one says that the client has had no event yet.
        const from = headers["last-event-id"] || cursor
        const events = yield* EventStream.open(reader, { ...subscriber, cursor: from, limit })
        return HttpServerResponse.stream(yield* endingWith(events, ended), {
          contentType: "text/event-stream",
          headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
        })
      }),
      acknowledgeSubscriptionEvents: ({ params, payload: { cursor, worker = defaultWorker } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(reader.acknowledge({ projectId, subscriptionId: params.subscription_id, worker }, cursor))
        ),
      seekSubscription: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(subscriptions.seek(projectId, params.subscription_id, payload.to))
        ),
      resumeSubscription: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(subscriptions.resume(projectId, params.subscription_id)))
    })
  })
)

type Filter = (typeof SubscriptionInfo.Type)["filter"]

const kindOf = Object.fromEntries(Object.entries(eventTypes).map(([kind, type]) => [type, kind])) as {
  readonly [Kind in keyof typeof eventTypes as (typeof eventTypes)[Kind]]: Kind
}

const filterInDomain = ({ types, ...conditions }: Filter): SubscriptionFilter => ({
  ...toCamelCase(conditions),
  kinds: types?.map((type) => kindOf[type])
})

const inDomain = <Body extends { readonly filter?: Filter | undefined }>({ filter, ...body }: Body) => ({
  ...body,
  filter: filter === undefined ? undefined : filterInDomain(filter)
})

/** The given conditions alone. */
const filterInfo = ({ kinds, ...conditions }: SubscriptionFilter): Filter => ({
  ...kinds === undefined ? {} : { types: kinds.map((kind) => eventTypes[kind]) },
  ...Object.fromEntries(
    Object.entries(conditions).filter(([, value]) => value !== undefined).map((
      [name, value]
    ) => [snakeCase(name), value])
  )
})

const info = (caller: Caller) => (subscription: Subscription): typeof SubscriptionInfo.Type => ({
  subscription_id: subscription.subscriptionId,
  name: subscription.name,
  filter: filterInfo(subscription.filter),
  webhook: subscription.webhook === null ? null : { url: shownUrl(caller, subscription.webhook.url) },
  created_at: dateText(subscription.createdAt),
  updated_at: dateText(subscription.updatedAt)
})

const detailInfo = (
  caller: Caller,
  { lag, progress, subscription }: SubscriptionDetail,
  now: number
): typeof SubscriptionDetailInfo.Type => ({
  ...info(caller)(subscription),
  lag: {
    events: lag.events,
    has_more: lag.hasMore,
    oldest_at: dateText(lag.oldestAt),
    oldest_age: lag.oldestAt === null ? 0 : Math.max(0, now - lag.oldestAt) / 1000,
    gap: lag.isGap
  },
  workers: progress.workers.map(({ until, worker }) => ({
    worker,
    shards: progress.shards.filter((shard) => shard.worker === worker).length,
    lease_until: dateText(until)
  })),
  push: subscription.webhook === null ? null : {
    status: progress.failure === null ? "ok" : progress.failure.pausedAt === null ? "failing" : "paused",
    failing_since: dateText(progress.failure?.since ?? null),
    reason: shownAnswer(caller, progress.failure?.reason ?? "")
  }
})

const page = ({ cursor, entries, isGap }: DeliveredEvents) => ({
  results: entries.map(subscriptionEvent),
  cursor,
  gap: isGap
})
