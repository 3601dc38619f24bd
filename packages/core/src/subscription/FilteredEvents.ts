/**
 * Applies the filters of subscriptions to what is read from the feed.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { FeedEntry, FeedSelection } from "../feed/FeedStore.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { Subscription, SubscriptionFilter } from "./Subscription.ts"

export class FilteredEvents extends Context.Service<FilteredEvents, {
  /** Returns those of the entries that the subscription delivers, as it delivers them. */
  readonly of: (
    subscription: Subscription,
    entries: ReadonlyArray<FeedEntry>
  ) => Effect.Effect<ReadonlyArray<FeedEntry>, StoreError>
}>()("@device-cloud/core/subscription/FilteredEvents") {
  static readonly layer: Layer.Layer<FilteredEvents, never, DeviceStore> = Layer.effect(
    FilteredEvents,
    Effect.suspend(() => make)
  )
}

/** Devices whose tags are kept. */
const capacity = 100_000

/** How long old tags may count, milliseconds. */
const timeToLive = 10_000

/** Devices whose tags are read at the same time. */
const concurrency = 16

/** The part of a filter that the feed applies. */
export const selectionOf = ({ deviceIds, kinds, productKeys }: SubscriptionFilter): FeedSelection => ({
  kinds,
  productKeys,
  deviceIds
})

/** Whether a subscription with the filter may deliver the event: only its tags are not looked at. */
export const mayDeliver = ({ deviceIds, kinds, productKeys, propertyIds }: SubscriptionFilter, event: DomainEvent) =>
  kinds?.includes(event._tag) !== false &&
  (productKeys === undefined || (event.device !== null && productKeys.includes(event.device.productKey))) &&
  (deviceIds === undefined || (event.device !== null && deviceIds.includes(event.device.deviceId))) &&
  withProperties(event, propertyIds) !== undefined

/** The event with the wanted properties alone; undefined: it has none of them. */
export const withProperties = (
  event: DomainEvent,
  propertyIds: ReadonlyArray<string> | undefined
): DomainEvent | undefined => {
  if (propertyIds === undefined || event._tag !== "PropertiesReported") return event
  const properties = Object.fromEntries(Object.entries(event.properties).filter(([id]) => propertyIds.includes(id)))
  if (Object.keys(properties).length === 0) return undefined
  const { earlier } = event
  return {
    ...event,
    properties,
    ...earlier === undefined ? {} : { earlier: earlier.filter(({ propertyId }) => propertyIds.includes(propertyId)) }
  }
}

const hasTags = (tags: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean =>
  Object.entries(wanted).every(([key, value]) => tags[key] === value)

const make = Effect.gen(function*() {
  const devices = yield* DeviceStore

  const load = (keys: ReadonlyArray<string>) =>
    Effect.forEach(keys, (key) => {
      const [projectId, deviceId] = key.split("/") as [ProjectId, DeviceId]
      return Effect.map(devices.get(projectId, { deviceId }), (found) =>
        [key, Option.match(found, { onNone: () => ({}), onSome: ({ device }) => device.tags })] as const)
    }, { concurrency }).pipe(Effect.map((tags) =>
      new Map(tags)
    ))

  /** By project and device. */
  const tagsOf = yield* NodeCache.make<string, Readonly<Record<string, string>>, StoreError>({
    capacity,
    timeToLive,
    load
  })

  const withTags = Effect.fnUntraced(function*(
    { projectId }: Subscription,
    entries: ReadonlyArray<FeedEntry>,
    wanted: NonNullable<SubscriptionFilter["tags"]>
  ) {
    const keyOf = ({ event }: FeedEntry) => event.device === null ? "" : `${projectId}/${event.device.deviceId}`
    const tags = yield* tagsOf.get([...new Set(entries.map(keyOf))].filter((key) => key !== ""))
    return entries.filter((entry) => hasTags(tags.get(keyOf(entry)) ?? {}, wanted))
  })

  const of: FilteredEvents["Service"]["of"] = (subscription, entries) => {
    const { propertyIds, tags } = subscription.filter
    const narrowed = entries.flatMap(({ event, id }) => {
      const kept = withProperties(event, propertyIds)
      return kept === undefined ? [] : [{ id, event: kept }]
    })
    return tags === undefined ? Effect.succeed(narrowed) : withTags(subscription, narrowed, tags)
  }

  return FilteredEvents.of({ of })
})
