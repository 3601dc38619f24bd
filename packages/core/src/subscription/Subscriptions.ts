/**
 * Manages subscriptions. `SubscriptionReader` reads their events.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Feed } from "../feed/Feed.ts"
import { type FeedPlace, feedStart } from "../feed/FeedStore.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import { WebhookClient } from "../scene/execution/WebhookClient.ts"
import type { FilteredEvents } from "./FilteredEvents.ts"
import { beginAt, moveTo } from "./Shards.ts"
import {
  type Subscription,
  SubscriptionChanges,
  SubscriptionDraft,
  SubscriptionNameTaken,
  SubscriptionNotFound,
  SubscriptionPushesNot,
  SubscriptionStart,
  type SubscriptionWebhook
} from "./Subscription.ts"
import * as SubscriptionLag from "./SubscriptionLag.ts"
import { type StoredSubscription, type SubscriptionModification, SubscriptionStore } from "./SubscriptionStore.ts"

/** A subscription, how far it is behind, who reads it, and what is wrong with its webhook. */
export interface SubscriptionDetail extends StoredSubscription {
  readonly lag: SubscriptionLag.SubscriptionLag
}

export class Subscriptions extends Context.Service<Subscriptions, {
  /** Creates a subscription. */
  readonly create: (
    projectId: ProjectId,
    draft: SubscriptionDraft
  ) => Effect.Effect<
    Subscription,
    InvalidInput | ProjectNotFound | SubscriptionNameTaken | QuotaExceeded | StoreError
  >
  /** Returns the subscription with its lag. */
  readonly get: (
    projectId: ProjectId,
    subscriptionId: number
  ) => Effect.Effect<SubscriptionDetail, SubscriptionNotFound | StoreError>
  /** Returns a page of the subscriptions of the project. */
  readonly list: (
    projectId: ProjectId,
    page: PageRequest
  ) => Effect.Effect<Page<Subscription>, InvalidInput | StoreError>
  /** Changes the subscription. A new filter counts for the events that are read from now on. */
  readonly change: (
    projectId: ProjectId,
    subscriptionId: number,
    changes: SubscriptionChanges
  ) => Effect.Effect<Subscription, InvalidInput | SubscriptionNotFound | SubscriptionNameTaken | StoreError>
  /** Removes the subscription. */
  readonly remove: (
    projectId: ProjectId,
    subscriptionId: number
  ) => Effect.Effect<void, SubscriptionNotFound | StoreError>
  /**
   * Moves the subscription to another place: what comes after it is delivered, also
   * if it was acknowledged before. What workers have read until now cannot be
   * acknowledged any more.
   */
  readonly seek: (
    projectId: ProjectId,
    subscriptionId: number,
    to: SubscriptionStart
  ) => Effect.Effect<void, InvalidInput | SubscriptionNotFound | StoreError>
  /** Pushes again after a pause, from where it has stopped. */
  readonly resume: (
    projectId: ProjectId,
    subscriptionId: number
  ) => Effect.Effect<void, SubscriptionNotFound | SubscriptionPushesNot | StoreError>
}>()("@device-cloud/core/subscription/Subscriptions") {
  static readonly layer: Layer.Layer<
    Subscriptions,
    never,
    SubscriptionStore | Feed | FilteredEvents | Quotas | WebhookClient
  > = Layer.effect(Subscriptions, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(SubscriptionDraft)
const decodeChanges = decodeInput(SubscriptionChanges)
const decodeStart = decodeInput(SubscriptionStart)

const make = Effect.gen(function*() {
  const store = yield* SubscriptionStore
  const feed = yield* Feed
  const quotas = yield* Quotas
  const client = yield* WebhookClient
  const measure = yield* SubscriptionLag.make

  const placeOf = (start: SubscriptionStart): Effect.Effect<FeedPlace, StoreError> => {
    if (start === "now") return feed.end
    return start === "earliest" ? Effect.succeed(feedStart) : feed.placeAt(start)
  }

  const checkWebhook = (webhook: SubscriptionWebhook | null | undefined): Effect.Effect<void, InvalidInput> => {
    const refused = webhook === null || webhook === undefined ? undefined : client.refuse(webhook.url)
    return refused === undefined
      ? Effect.void
      : Effect.fail(new InvalidInput({ issues: [{ path: ["webhook", "url"], message: refused }] }))
  }

  /** Takes a step in the transaction of the caller. */
  const step = <A>(modification: SubscriptionModification<A>) =>
    Effect.map(store.modify([modification]), ([result]) => result!)

  const notFound = (subscriptionId: number) => () => new SubscriptionNotFound({ subscriptionId })

  const create = Effect.fn("Subscriptions.create")(function*(projectId: ProjectId, input: SubscriptionDraft) {
    const { filter = {}, name, start = "now", webhook = null } = yield* decodeDraft(input)
    yield* checkWebhook(webhook)
    const createdAt = yield* Clock.currentTimeMillis
    const subscription = { projectId, name, filter, webhook, createdAt, updatedAt: createdAt }
    const insert = store.insert(subscription, beginAt(yield* placeOf(start)))
    const stored = yield* quotas.within(projectId, "subscriptions", 1, insert)
    if (stored === "taken") return yield* new SubscriptionNameTaken({ name })
    if (stored === "no-project") return yield* new ProjectNotFound({ projectId })
    return stored
  })

  const get = Effect.fn("Subscriptions.get")(function*(projectId: ProjectId, subscriptionId: number) {
    const stored = yield* Effect.fromOption(yield* store.get(projectId, subscriptionId), notFound(subscriptionId))
    return { ...stored, lag: yield* measure(stored) }
  })

  const change = Effect.fn("Subscriptions.change")(
    function*(projectId: ProjectId, subscriptionId: number, input: SubscriptionChanges) {
      const changes = yield* decodeChanges(input)
      yield* checkWebhook(changes.webhook)
      const updatedAt = yield* Clock.currentTimeMillis
      const changed = yield* store.update(projectId, subscriptionId, { ...changes, updatedAt })
      if (changed === "taken") return yield* new SubscriptionNameTaken({ name: changes.name ?? "" })
      const subscription = yield* Effect.fromOption(changed, notFound(subscriptionId))
      if (changes.webhook !== undefined) yield* forgetFailure(projectId, subscriptionId)
      return subscription
    }
  )

  const forgetFailure = (projectId: ProjectId, subscriptionId: number) =>
    step({
      projectId,
      subscriptionId,
      step: ({ progress, subscription }) => [subscription, { ...progress, failure: null }]
    })

  const remove = Effect.fn("Subscriptions.remove")(function*(projectId: ProjectId, subscriptionId: number) {
    if (!(yield* store.remove(projectId, subscriptionId))) return yield* new SubscriptionNotFound({ subscriptionId })
  })

  const seek = Effect.fn("Subscriptions.seek")(
    function*(projectId: ProjectId, subscriptionId: number, to: SubscriptionStart) {
      const place = yield* placeOf(yield* decodeStart(to))
      const moved = yield* step({
        projectId,
        subscriptionId,
        step: ({ progress }) => [undefined, moveTo(progress, place)]
      })
      yield* Effect.fromOption(moved, notFound(subscriptionId))
    }
  )

  const resume = Effect.fn("Subscriptions.resume")(function*(projectId: ProjectId, subscriptionId: number) {
    const { webhook } = yield* Effect.fromOption(
      yield* forgetFailure(projectId, subscriptionId),
      notFound(subscriptionId)
    )
    if (webhook === null) return yield* new SubscriptionPushesNot({ subscriptionId })
  })

  return Subscriptions.of({ create, get, list: paged(store.list), change, remove, seek, resume })
})
