/**
 * Subscriptions in memory.
 */
import { type ProjectId, type StoredSubscription, SubscriptionStore } from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Can be replaced alone, in memory or elsewhere. */
export const layer: Layer.Layer<SubscriptionStore, never, Tables> = Layer.effect(
  SubscriptionStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ nextId, projects, subscriptions }: Tables["Service"]) => {
  const find = (projectId: ProjectId, subscriptionId: number): StoredSubscription | undefined => {
    const stored = subscriptions.get(subscriptionId)
    return stored?.subscription.projectId === projectId ? stored : undefined
  }

  const ofProject = (projectId: ProjectId) =>
    [...subscriptions.values()].map(({ subscription }) => subscription).filter((subscription) =>
      subscription.projectId === projectId
    )

  const isTaken = (projectId: ProjectId, name: string) => ofProject(projectId).some((other) => other.name === name)

  return SubscriptionStore.of({
    insert: (draft, progress) =>
      Effect.sync(() => {
        if (!projects.has(draft.projectId)) return "no-project"
        if (isTaken(draft.projectId, draft.name)) return "taken"
        const subscription = { ...draft, subscriptionId: nextId() }
        subscriptions.set(subscription.subscriptionId, { subscription, progress })
        return subscription
      }),
    get: (projectId, subscriptionId) => Effect.sync(() => Option.fromUndefinedOr(find(projectId, subscriptionId))),
    list: (projectId, page) => Effect.sync(() => paginate(ofProject(projectId), page)),
    all: (after, limit) =>
      Effect.sync(() =>
        [...subscriptions.values()].filter(({ subscription }) => subscription.subscriptionId > after).slice(0, limit)
      ),
    pushing: (projectId, except = []) =>
      Effect.sync(() =>
        [...subscriptions.values()].filter(({ subscription }) =>
          subscription.webhook !== null && (projectId === undefined || subscription.projectId === projectId) &&
          !except.includes(subscription.subscriptionId)
        )
      ),
    update: (projectId, subscriptionId, { updatedAt, ...change }) =>
      Effect.sync(() => {
        const stored = find(projectId, subscriptionId)
        if (stored === undefined) return Option.none()
        const { subscription } = stored
        const { filter = subscription.filter, name = subscription.name, webhook = subscription.webhook } = change
        if (name !== subscription.name && isTaken(projectId, name)) return "taken"
        const changed = { ...subscription, name, filter, webhook, updatedAt }
        subscriptions.set(subscriptionId, { ...stored, subscription: changed })
        return Option.some(changed)
      }),
    remove: (projectId, subscriptionId) =>
      Effect.sync(() => find(projectId, subscriptionId) !== undefined && subscriptions.delete(subscriptionId)),
    modify: (modifications) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        modifications.map(({ projectId, step, subscriptionId }) => {
          const stored = find(projectId, subscriptionId)
          if (stored === undefined) return Option.none()
          const [result, progress] = step(stored, now)
          if (progress !== undefined) subscriptions.set(subscriptionId, { ...stored, progress })
          return Option.some(result)
        }))
  })
}
