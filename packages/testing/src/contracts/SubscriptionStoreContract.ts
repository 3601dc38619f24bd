/**
 * The laws of `SubscriptionStore`.
 */
import {
  beginAt,
  type DeviceCloud,
  type NewSubscription,
  type Progress,
  ProjectId,
  ProjectStore,
  type StoredSubscription,
  type Subscription,
  SubscriptionStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { assertPages, epoch, insertProject, unique } from "./Samples.ts"

const newSubscription = (projectId: ProjectId, fields: Partial<NewSubscription> = {}): NewSubscription => ({
  projectId,
  name: unique("subscription"),
  filter: {},
  webhook: null,
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

const insertSubscription = Effect.fnUntraced(function*(projectId: ProjectId, fields: Partial<NewSubscription> = {}) {
  const subscription = yield* (yield* SubscriptionStore).insert(newSubscription(projectId, fields), beginAt("7"))
  assert.isObject(subscription)
  return subscription as Subscription
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`SubscriptionStore: ${name}`, (it) => {
    it.effect("keeps subscriptions of a project, each name once", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const filter = { kinds: ["PropertiesReported"], tags: { room: "küche" }, propertyIds: ["temp"] } as const
        const one = yield* insertSubscription(id, { name: "One", filter })
        const two = yield* insertSubscription(id, {
          webhook: { url: "https://example.com/hook" },
          createdAt: epoch + 1,
          updatedAt: epoch + 1
        })
        assert.deepStrictEqual(one, {
          ...newSubscription(id, { name: "One", filter }),
          subscriptionId: one.subscriptionId
        })
        assert.deepStrictEqual(two.webhook, { url: "https://example.com/hook" })
        assert.deepStrictEqual(
          yield* store.get(id, two.subscriptionId),
          Option.some({ subscription: two, progress: beginAt("7") })
        )
        assert.isTrue(Option.isNone(yield* store.get(stranger, two.subscriptionId)))
        yield* assertPages((page) => store.list(id, page), [two, one])
        assert.deepStrictEqual(yield* store.all(one.subscriptionId - 1, 1), [
          Option.getOrThrow(yield* store.get(id, one.subscriptionId))
        ])
        assert.deepStrictEqual(yield* store.all(one.subscriptionId, 1), [{
          subscription: two,
          progress: beginAt("7")
        }])
        const pushing = yield* store.pushing()
        assert.deepInclude(pushing, { subscription: two, progress: beginAt("7") })
        assert.isTrue(pushing.every(({ subscription }) => subscription.webhook !== null))
        assert.deepStrictEqual(yield* store.pushing(id), [{ subscription: two, progress: beginAt("7") }])
        assert.deepStrictEqual(yield* store.pushing(id, [two.subscriptionId]), [])
        assert.deepStrictEqual(yield* store.pushing(id, [one.subscriptionId]), yield* store.pushing(id))
        assert.deepStrictEqual(yield* store.pushing(stranger), [])
        assert.strictEqual(yield* store.insert(newSubscription(id, { name: "One" }), beginAt("")), "taken")
        yield* insertSubscription(stranger, { name: "One" })
        assert.strictEqual(yield* store.insert(newSubscription(ProjectId.make("missing")), beginAt("")), "no-project")
      }))

    it.effect("changes and removes subscriptions of their project only", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const one = yield* insertSubscription(id, { webhook: { url: "https://example.com/" } })
        const { subscriptionId } = one
        const two = yield* insertSubscription(id, { name: "Two" })
        yield* insertSubscription(stranger, { name: "Three" })
        const progress: Progress = { ...beginAt("7"), epoch: 3 }
        yield* store.modify([{ projectId: id, subscriptionId, step: () => [undefined, progress] }])
        assert.strictEqual(
          yield* store.update(id, subscriptionId, { name: "Two", filter: { tags: {} }, updatedAt: epoch + 1 }),
          "taken"
        )
        assert.deepStrictEqual(yield* store.get(id, subscriptionId), Option.some({ subscription: one, progress }))
        const changed = { ...one, filter: { propertyIds: ["temp"], tags: { room: "hall" } }, updatedAt: epoch + 2 }
        assert.deepStrictEqual(
          yield* store.update(id, subscriptionId, {
            name: one.name,
            filter: changed.filter,
            updatedAt: epoch + 2
          }),
          Option.some(changed)
        )
        assert.deepStrictEqual(
          yield* store.update(id, subscriptionId, { webhook: null, updatedAt: epoch + 3 }),
          Option.some({ ...changed, webhook: null, updatedAt: epoch + 3 })
        )
        const renamed = { ...changed, webhook: null, name: "Three", updatedAt: epoch + 4 }
        assert.deepStrictEqual(
          yield* store.update(id, subscriptionId, { name: "Three", updatedAt: epoch + 4 }),
          Option.some(renamed)
        )
        assert.deepStrictEqual(yield* store.get(id, subscriptionId), Option.some({ subscription: renamed, progress }))
        assert.deepStrictEqual(
          yield* store.update(stranger, subscriptionId, { name: "x", updatedAt: epoch }),
          Option.none()
        )
        assert.isFalse(yield* store.remove(stranger, subscriptionId))
        assert.isTrue(yield* store.remove(id, subscriptionId))
        assert.isFalse(yield* store.remove(id, subscriptionId))
        assert.deepStrictEqual(yield* store.list(id, { page: 1, pageSize: 10 }), { items: [two], total: 1 })
      }))

    it.effect("goes with its project", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const { subscriptionId } = yield* insertSubscription(id)
        assert.strictEqual(yield* (yield* ProjectStore).remove(id), "removed")
        assert.isTrue(Option.isNone(yield* store.get(id, subscriptionId)))
        assert.deepStrictEqual(yield* store.all(subscriptionId - 1, 1), [])
      }))

    it.effect("keeps all that has become of a subscription", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const subscription = yield* insertSubscription(id, { webhook: { url: "https://example.com/hook" } })
        const { subscriptionId } = subscription
        const begun = beginAt("7")
        const progress: Progress = {
          epoch: 4,
          shards: begun.shards.map((shard, i) => ({
            place: `${shard.place}-${i}`,
            epoch: i,
            worker: i % 2 === 0 ? "one" : null
          })),
          workers: [{ worker: "one", until: epoch + 30_000 }, { worker: "two", until: epoch + 40_000 }],
          failure: {
            since: epoch,
            attempts: 3,
            nextAt: epoch + 16_000,
            pausedAt: epoch + 5,
            reason: "Answered with 500"
          }
        }
        const step = (next: Progress) =>
          store.modify([{ projectId: id, subscriptionId, step: () => [undefined, next] }])
        const kept = Effect.gen(function*() {
          const read = [
            ...Option.toArray(yield* store.get(id, subscriptionId)),
            ...yield* store.all(subscriptionId - 1, 1),
            ...yield* store.pushing(id)
          ]
          yield* store.modify([{
            projectId: id,
            subscriptionId,
            step: (stored) => [void read.push(stored)]
          }])
          return read
        })
        for (const next of [progress, { ...progress, workers: [], failure: null }]) {
          yield* step(next)
          assert.deepStrictEqual(yield* kept, Array.from({ length: 4 }, () => ({ subscription, progress: next })))
        }
      }))

    it.effect("makes steps of a subscription one after the other, by one clock", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const { subscriptionId } = yield* insertSubscription(id)
        const times = yield* Effect.all(
          Array.from({ length: 10 }, () =>
            store.modify([{
              projectId: id,
              subscriptionId,
              step: ({ progress }, now): readonly [number, Progress] => [
                now,
                { ...progress, epoch: progress.epoch + 1 }
              ]
            }])),
          { concurrency: "unbounded" }
        )
        assert.isTrue(times.every(([time]) => Option.isSome(time!)))
        const unchanged = yield* store.modify([{
          projectId: id,
          subscriptionId,
          step: ({ progress }) => [progress.epoch]
        }])
        assert.deepStrictEqual(unchanged, [Option.some(10)])
        assert.deepStrictEqual(
          Option.map(yield* store.get(id, subscriptionId), ({ progress }) => progress),
          Option.some({ ...beginAt("7"), epoch: 10 })
        )
        assert.deepStrictEqual(
          yield* store.modify([{ projectId: stranger, subscriptionId, step: () => [undefined] }]),
          [Option.none()]
        )
      }))

    it.effect("takes steps of many subscriptions together, and loses none of other writers", () =>
      Effect.gen(function*() {
        const store = yield* SubscriptionStore
        const { id } = yield* insertProject
        const { id: stranger } = yield* insertProject
        const known = yield* Effect.forEach(Array.from({ length: 5 }), () => insertSubscription(id))
        const ids = known.map(({ subscriptionId }) => subscriptionId)
        const count = (projectId: ProjectId, subscriptionId: number, isWriting = true) => ({
          projectId,
          subscriptionId,
          step: (
            { progress: { epoch, ...progress }, subscription }: StoredSubscription
          ): readonly [string, (Progress | undefined)?] => [
            `${subscription.subscriptionId}: ${epoch}`,
            isWriting ? { ...progress, epoch: epoch + 1 } : undefined
          ]
        })
        const [first, second] = ids as [number, number]
        assert.deepStrictEqual(
          yield* store.modify([
            count(id, second),
            count(id, first),
            count(stranger, first),
            count(id, first, false),
            count(id, Math.max(...ids) + 1_000_000),
            count(id, first)
          ]),
          [
            Option.some(`${second}: 0`),
            Option.some(`${first}: 0`),
            Option.none(),
            Option.some(`${first}: 1`),
            Option.none(),
            Option.some(`${first}: 1`)
          ]
        )
        assert.deepStrictEqual(yield* store.modify([]), [])
        yield* Effect.forEach(
          Array.from({ length: 20 }),
          (_, turn) => store.modify((turn % 2 === 0 ? ids : ids.toReversed()).map((each) => count(id, each))),
          { concurrency: "unbounded" }
        )
        const epochs = yield* Effect.forEach(
          ids,
          (each) => Effect.map(store.get(id, each), (stored) => Option.getOrThrow(stored).progress.epoch)
        )
        assert.deepStrictEqual(epochs, [22, 21, 20, 20, 20])
      }))
  })
