/**
 * Subscriptions: named readers of the feed, which keep their places
 * (docs/api/subscriptions.md).
 */
import { Schema } from "effect"
import { Tags } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { NonBlankText, Text } from "../kernel/Text.ts"
import type { ProjectId } from "../project/Project.ts"

/** Devices that a filter names, at most. */
export const maxFilterDevices = 1000

/** Products, and properties, that a filter names, at most. */
const maxNamed = 100

/** The most events of one read. */
export const maxEvents = 1000

/** The longest that a read waits for an event, seconds. */
export const maxWait = 30

/** Workers that share a subscription at the same time, at most. A worker beyond the sixteenth gets nothing. */
export const maxWorkers = 64

const kinds = [
  "DeviceStatusChanged",
  "ConnectionReplaced",
  "PropertiesReported",
  "EventReported",
  "CommandReplied",
  "UpgradeProgressed",
  "DeviceLifecycle",
  "TopologyChanged",
  "SceneExecuted"
] as const satisfies ReadonlyArray<DomainEvent["_tag"]>

const listOf = <S extends Schema.Top>(item: S, maximum: number) =>
  Schema.Array(item).check(
    Schema.makeFilter(({ length }) => length >= 1 && length <= maximum ? undefined : `Expected 1 to ${maximum}`)
  )

/** Which events a subscription delivers: those that fulfil each condition. Without conditions it delivers all. */
export const SubscriptionFilter = Schema.Struct({
  /** Kinds of events. */
  kinds: Schema.optional(listOf(Schema.Literals(kinds), kinds.length)),
  /** At most 100. Events without a device do not fulfil it. */
  productKeys: Schema.optional(listOf(Text(128).pipe(Schema.brand("ProductKey")), maxNamed)),
  /** At most 1,000. Events without a device do not fulfil it. */
  deviceIds: Schema.optional(listOf(Text(128).pipe(Schema.brand("DeviceId")), maxFilterDevices)),
  /** Tags that the device of the event has when the event is read. A device that was deleted has none. */
  tags: Schema.optional(Tags),
  /**
   * At most 100. Of reports of properties, it leaves all other values out, and
   * reports that have none of these. It concerns no other kind of event.
   */
  propertyIds: Schema.optional(listOf(Text(128), maxNamed))
})
export interface SubscriptionFilter extends Schema.Schema.Type<typeof SubscriptionFilter> {}

const start = { expected: `"now", "earliest" or Unix milliseconds` }

/** Where reading begins: with the next event, the oldest one that is kept, or those since a time (Unix milliseconds). */
export const SubscriptionStart = Schema.Union([
  // For a text, this member alone says what is expected.
  Schema.Literals(["now", "earliest"]).annotate(start),
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8_640_000_000_000_000 }))
]).annotate(start)
export type SubscriptionStart = typeof SubscriptionStart.Type

/** Where events are pushed to. */
export const SubscriptionWebhook = Schema.Struct({ url: Text(2048) })
export interface SubscriptionWebhook extends Schema.Schema.Type<typeof SubscriptionWebhook> {}

/** What the caller decides about a new subscription. */
export const SubscriptionDraft = Schema.Struct({
  /** Unique in the project: 1 to 128 characters. */
  name: NonBlankText(128),
  /** Default: all events. */
  filter: Schema.optional(SubscriptionFilter),
  /** Default: `now`. */
  start: Schema.optional(SubscriptionStart),
  /** Makes the cloud push the events. */
  webhook: Schema.optional(SubscriptionWebhook)
})
export interface SubscriptionDraft extends Schema.Schema.Type<typeof SubscriptionDraft> {}

/** What the caller may change; what is left out stays. */
export const SubscriptionChanges = Schema.Struct({
  name: Schema.optional(NonBlankText(128)),
  filter: Schema.optional(SubscriptionFilter),
  /** Null: events are not pushed any more. */
  webhook: Schema.optional(Schema.NullOr(SubscriptionWebhook))
})
export interface SubscriptionChanges extends Schema.Schema.Type<typeof SubscriptionChanges> {}

/** The name of a worker. */
export const WorkerName = NonBlankText(64)

/** The worker of a caller that names none. */
export const defaultWorker = "default"

export interface Subscription {
  /** Positive; a later subscription has a greater one. */
  readonly subscriptionId: number
  readonly projectId: ProjectId
  readonly name: string
  readonly filter: SubscriptionFilter
  /** Null: workers read the events. */
  readonly webhook: SubscriptionWebhook | null
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** A subscription before it is stored. */
export type NewSubscription = Omit<Subscription, "subscriptionId">

/** The project has no such subscription. */
export class SubscriptionNotFound extends DomainError<SubscriptionNotFound>()(
  "SubscriptionNotFound",
  {
    subscriptionId: Schema.Int
  },
  ({ subscriptionId }) => `There is no subscription ${subscriptionId}`
) {}

/** The project has a subscription of this name. */
export class SubscriptionNameTaken extends DomainError<SubscriptionNameTaken>()(
  "SubscriptionNameTaken",
  {
    name: Schema.String
  },
  ({ name }) => `There is a subscription ${name} already`
) {}

/** The subscription pushes its events to its webhook: nobody else reads them. */
export class SubscriptionPushes extends DomainError<SubscriptionPushes>()(
  "SubscriptionPushes",
  {
    subscriptionId: Schema.Int
  },
  ({ subscriptionId }) => `Subscription ${subscriptionId} pushes its events to its webhook`
) {}

/** The subscription has no webhook, so there is nothing to resume. */
export class SubscriptionPushesNot extends DomainError<SubscriptionPushesNot>()(
  "SubscriptionPushesNot",
  {
    subscriptionId: Schema.Int
  },
  ({ subscriptionId }) => `Subscription ${subscriptionId} has no webhook`
) {}

/** The subscription has {@link maxWorkers} workers. */
export class TooManyWorkers extends DomainError<TooManyWorkers>()(
  "TooManyWorkers",
  {
    subscriptionId: Schema.Int
  },
  ({ subscriptionId }) => `Subscription ${subscriptionId} has ${maxWorkers} workers already`
) {}

/**
 * The worker does not hold any more what it acknowledges: its lease has ended and
 * another worker has its devices, or the subscription was moved to another place.
 */
export class SubscriptionLeaseLost extends DomainError<SubscriptionLeaseLost>()(
  "SubscriptionLeaseLost",
  {
    subscriptionId: Schema.Int,
    worker: Schema.String
  },
  ({ subscriptionId, worker }) =>
    `Worker ${worker} does not hold any more of subscription ${subscriptionId} what this cursor acknowledges; read again without a cursor`
) {}
