/**
 * The laws of `FeedStore`, and of what `UplinkStore` writes into the feed.
 */
import {
  type Device,
  type DeviceCloud,
  DeviceName,
  DeviceStore,
  type DomainEvent,
  type FeedEntry,
  type FeedPlace,
  type FeedSelection,
  feedStart,
  FeedStore,
  HistoryStore,
  isFeedPlace,
  type Product,
  ProductKey,
  type ProjectId,
  SceneId,
  type Shadow,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertDevices, insertProduct, newDevice, reported } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores), { excludeTestServices: true })(`FeedStore: ${name}`, (it) => {
    it.effect("reads events of every kind as they were recorded", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const events = everyKind(device)
        yield* store.append(events)
        assert.deepStrictEqual((yield* readAll(device.projectId)).map(({ event }) => event), events)
      }))

    it.effect("what a device has reported is part of its history", () =>
      Effect.gen(function*() {
        const { device } = yield* insertDevice
        const event = { eventId: "found", time: epoch, value: { count: 1 } }
        yield* (yield* FeedStore).append([{ _tag: "EventReported", device, at: epoch, ...event }])
        const range = { start: 0, end: 2 * epoch, limit: 10, order: "asc" } as const
        assert.deepStrictEqual(yield* (yield* HistoryStore).events(device.deviceId, undefined, range), [event])
      }))

    it.effect("goes on from the place of any event, page by page, to the end", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const before = yield* store.end
        for (let i = 0; i < 3; i++) yield* store.append([online(device, 2 * i), online(device, 2 * i + 1)])
        const after = yield* store.end
        const all = yield* readAll(device.projectId, before)
        assert.deepStrictEqual(all.map(versionOf), [0, 1, 2, 3, 4, 5])
        const ids = [before, ...all.map(({ id }) => id), after]
        assert.deepStrictEqual(ids.toSorted(), ids)
        assert.isTrue(ids.every(isFeedPlace))
        for (const [i, { id }] of all.entries()) {
          assert.deepStrictEqual(
            (yield* readAll(device.projectId, id, {}, 2)).map(versionOf),
            [0, 1, 2, 3, 4, 5].slice(i + 1)
          )
        }
        assert.deepStrictEqual(yield* readAll(device.projectId, after), [])
      }))

    it.effect("reads events page by page to the end however large they are", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const before = yield* store.end
        const value = "x".repeat(200_000)
        const times = Array.from({ length: 100 }, (_, i) => epoch + i)
        yield* store.append(
          times.map((time) => ({ _tag: "EventReported", device, at: time, eventId: "large", time, value }))
        )
        yield* store.append([online(device, 1)])
        const all = yield* readAll(device.projectId, before, {}, 1000)
        assert.deepStrictEqual(all.map(({ event }) => event.at), [...times, online(device, 1).at])
        const select = { kinds: ["DeviceStatusChanged" as const] }
        const page = yield* store.read({ projectId: device.projectId, after: before, limit: 1000, select })
        assert.deepStrictEqual(page.entries.map(versionOf), [1])
        assert.isNotTrue(page.isCut)
      }))

    it.effect("fails for a text that is no place, and for no other reason", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const error = yield* Effect.flip(
          store.read({ projectId: device.projectId, after: "17-process", limit: 1 })
        )
        assert.isFalse(error.retryable)
        assert.include(String(error.cause), "expected a place of the feed")
      }))

    it.effect("keeps projects apart, and shows all of them to those who may see all", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const [{ device: one }, { device: two }] = [yield* insertDevice, yield* insertDevice]
        const before = yield* store.end
        yield* store.append([online(one, 1), online(two, 2), online(one, 3)])
        assert.deepStrictEqual((yield* readAll(one.projectId, before)).map(versionOf), [1, 3])
        assert.deepStrictEqual((yield* readAll(two.projectId, before)).map(versionOf), [2])
        assert.deepStrictEqual((yield* readAll(undefined, before)).map(versionOf), [1, 2, 3])
        const ofTwo = { projectIds: [two.projectId] }
        assert.deepStrictEqual((yield* readAll(undefined, before, ofTwo)).map(versionOf), [2])
        assert.deepStrictEqual(yield* readAll(undefined, before, { projectIds: [] }), [])
        assert.deepStrictEqual(yield* readAll(one.projectId, before, ofTwo), [])
      }))

    it.effect("selects by kind, product and device", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const product = yield* insertProduct
        const [one, two] = (yield* insertDevices(product, [newDevice(), newDevice()])) as [Device, Device]
        yield* store.append([online(one, 1), lifecycle(one), online(two, 2), executed(product)])
        const tags = (select: FeedSelection) =>
          Effect.map(readAll(product.projectId, feedStart, select), (entries) => entries.map(({ event }) => event._tag))
        assert.deepStrictEqual(yield* tags({ kinds: ["DeviceLifecycle", "SceneExecuted"] }), [
          "DeviceLifecycle",
          "SceneExecuted"
        ])
        assert.deepStrictEqual(yield* tags({ deviceIds: [one.deviceId] }), ["DeviceStatusChanged", "DeviceLifecycle"])
        assert.lengthOf(yield* tags({ productKeys: [product.productKey] }), 3)
        assert.lengthOf(yield* tags({ productKeys: [ProductKey.make("other")] }), 0)
        assert.deepStrictEqual(
          yield* tags({ productKeys: [product.productKey], deviceIds: [two.deviceId], kinds: [] }),
          []
        )
      }))

    it.effect("tells of the presence of a device, the latest first, and of nothing else", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const product = yield* insertProduct
        const [one, two] = (yield* insertDevices(product, [newDevice(), newDevice()])) as [Device, Device]
        assert.deepStrictEqual(yield* store.presenceOf(one.deviceId, { limit: 10 }), [])
        const told = [online(one, 1), replaced(one), offline(one, 2), online(one, 3), offline(one, 4)]
        yield* store.append([told[0]!, online(two, 1), lifecycle(one)])
        yield* store.append([told[1]!, executed(product), told[2]!])
        yield* store.append(told.slice(3))
        const all = yield* store.presenceOf(one.deviceId, { limit: 10 })
        assert.deepStrictEqual(all.map(({ event }) => event).toReversed(), told)
        const ids = new Map((yield* readAll(product.projectId)).map(({ event, id }) => [id, event]))
        assert.deepStrictEqual(all.map(({ id }) => ids.get(id)), all.map(({ event }) => event))
        assert.deepStrictEqual(yield* store.presenceOf(one.deviceId, { limit: 2 }), all.slice(0, 2))
        for (const [i, { id: before }] of all.entries()) {
          assert.deepStrictEqual(yield* store.presenceOf(one.deviceId, { before, limit: 2 }), all.slice(i + 1, i + 3))
        }
        assert.isFalse(
          (yield* Effect.flip(store.presenceOf(one.deviceId, { before: "yesterday", limit: 1 }))).retryable
        )
      }))

    it.effect("a read that selects little looks at a bounded part and says where to go on", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const product = yield* insertProduct
        const [one, two] = (yield* insertDevices(product, [newDevice(), newDevice()])) as [Device, Device]
        yield* store.append(Array.from({ length: 12_000 }, (_, i) => online(one, i)))
        yield* store.append([online(two, 1)])
        const select = { deviceIds: [two.deviceId] }
        const first = yield* store.read({ projectId: product.projectId, after: feedStart, limit: 1, select })
        assert.deepStrictEqual(first.entries, [])
        assert.isTrue(first.hasMore)
        assert.isAbove(first.next.localeCompare(feedStart), 0)
        assert.deepStrictEqual((yield* readAll(product.projectId, feedStart, select, 1)).map(versionOf), [1])
      }))

    it.effect("keeps the events of a device that was deleted, with its names", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        yield* store.append([online(device, 1)])
        const removed = yield* store.commit(
          (yield* DeviceStore).remove(device.projectId, device.deviceId),
          () => [{ ...lifecycle(device), action: "delete" }]
        )
        assert.isTrue(Option.isSome(removed))
        const found = yield* readAll(device.projectId, feedStart, { deviceIds: [device.deviceId] })
        assert.deepStrictEqual(found.map(({ event }) => event), [
          online(device, 1),
          { ...lifecycle(device), action: "delete" }
        ])
      }))

    it.effect("records what is committed and nothing of what fails", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const failed = yield* Effect.flip(store.commit(
          Effect.andThen(store.append([online(device, 1)]), Effect.fail("refused" as const)),
          () => [online(device, 2)]
        ))
        assert.strictEqual(failed, "refused")
        // The result is that of the write itself, not a copy.
        const result = { removed: new Map([["device", new Uint8Array(2)]]), none: undefined }
        const told: Array<unknown> = []
        const committed = yield* store.commit(Effect.succeed(result), (result) => {
          told.push(result)
          return [online(device, 3), online(device, 4)]
        })
        assert.strictEqual(committed, result)
        assert.strictEqual(told.at(-1), result)
        yield* store.commit(Effect.void, () => [])
        const versions = (yield* readAll(device.projectId)).map(versionOf)
        assert.notInclude(versions, 2)
        assert.deepStrictEqual(versions.slice(-2), [3, 4])
      }))

    it.effect("a reader misses nothing of a transaction that ends after a later one", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        const read = (after: FeedPlace) => store.read({ projectId: device.projectId, after, limit: 10 })
        const [slow, end] = yield* beginTransaction([online(device, 1)], [])
        const later = yield* Effect.forkChild(Effect.andThen(store.append([online(device, 2)]), read(feedStart)))
        yield* letRun(later)
        yield* end
        yield* Fiber.join(slow)
        const first = yield* Fiber.join(later)
        const second = yield* read(first.next)
        assert.deepStrictEqual([...first.entries, ...second.entries].map(versionOf), [1, 2])
      }))

    it.effect("events of a device are in the order in which they were stored, whenever their transactions began", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const product = yield* insertProduct
        const [device, other] = (yield* insertDevices(product, [newDevice(), newDevice()])) as [Device, Device]
        // It has its number now, and writes the device when the later one has ended.
        const [early, end] = yield* beginTransaction([lifecycle(other)], [online(device, 2)])
        const later = yield* Effect.forkChild(store.append([online(device, 1)]))
        const isStored = yield* letRun(later)
        yield* end
        yield* Fiber.join(early)
        yield* Fiber.join(later)
        const found = yield* readAll(product.projectId, feedStart, { deviceIds: [device.deviceId] })
        const versions = found.map(versionOf)
        if (isStored) assert.deepStrictEqual(versions, [1, 2])
        else assert.sameMembers(versions, [1, 2])
      }))

    it.effect("what devices report is in the feed once, with what replaces it, in order", () =>
      Effect.gen(function*() {
        const { device } = yield* insertDevice
        const report: DomainEvent = {
          _tag: "PropertiesReported",
          device: namesOf(device),
          at: epoch,
          properties: { t: { value: 2, time: 5 }, u: { value: { a: [null] }, time: 6 } },
          earlier: [{ propertyId: "t", value: 1, time: 5 }]
        }
        const happened = [report, ...reported(device, { events: [{ eventId: "e", time: 1, value: "\0" }] })]
        const reply: DomainEvent = {
          _tag: "CommandReplied",
          device: namesOf(device),
          at: epoch,
          messageId: 1,
          code: 200,
          message: "",
          data: {}
        }
        yield* commit(device, happened, nextVersion, [reply])
        yield* commit(device, happened.slice(1), (shadow) => shadow)
        yield* UplinkStore.use((store) => store.commit({ devices: [], commands: [], happened: [reply] }))
        assert.deepStrictEqual(
          (yield* readAll(device.projectId)).map(({ event }) => event),
          [reply, ...happened, ...happened.slice(1), reply]
        )
      }))

    it.effect("concurrent reports of a device are in the order in which its shadow took them", () =>
      Effect.gen(function*() {
        const { device } = yield* insertDevice
        yield* Effect.forEach(
          Array.from({ length: 20 }),
          () =>
            UplinkStore.use((store) =>
              store.commit({
                devices: [{
                  deviceId: device.deviceId,
                  update: (shadow) => [undefined, nextVersion(shadow), {
                    happened: reported(device, { samples: [{ propertyId: "v", time: 1, value: shadow.version }] }),
                    reactions: []
                  }]
                }],
                commands: []
              })
            ),
          { concurrency: "unbounded" }
        )
        const values = (yield* readAll(device.projectId)).map(({ event }) =>
          event._tag === "PropertiesReported" ? event.properties["v"]?.value : undefined
        )
        assert.deepStrictEqual(values, Array.from({ length: 20 }, (_, i) => i))
      }))

    it.effect("finds the place of a time", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        yield* store.append(Array.from({ length: 10 }, (_, i) => online(device, i)))
        const all = yield* readAll(device.projectId, yield* store.placeAt(epoch))
        assert.deepStrictEqual(all.map(versionOf), Array.from({ length: 10 }, (_, i) => i))
      }))

    it.effect("forgets the oldest events, and tells those who have not read them", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        yield* store.append([online(device, 1), online(device, 2)])
        const [first, second] = yield* readAll(device.projectId)
        // A part that is in use may have to grow old first.
        while ((yield* readAll(device.projectId)).length > 0) {
          yield* store.prune({ keepMillis: -1, maxBytes: 1e9, isHistoryApart: true })
        }
        yield* store.append([online(device, 3)])
        const after = (place: FeedPlace) => store.read({ projectId: device.projectId, after: place, limit: 10 })
        const missed = yield* after(first!.id)
        assert.isTrue(missed.isGap)
        assert.deepStrictEqual(missed.entries.map(versionOf), [3])
        assert.isFalse((yield* after(second!.id)).isGap)
        assert.isFalse((yield* after(feedStart)).isGap)
        assert.isFalse((yield* after(yield* store.end)).isGap)
      }))

    it.effect("forgets the oldest events beyond the bytes that are kept, and no event of those", () =>
      Effect.gen(function*() {
        const store = yield* FeedStore
        const { device } = yield* insertDevice
        // Text that no storage makes smaller.
        let random = 1
        const value = () =>
          Array.from({ length: 20_000 }, () => (random = random * 48_271 % 0x7fffffff).toString(36)).join("")
        yield* store.append(
          Array.from(
            { length: 40 },
            (_, i) => ({ _tag: "EventReported", device, at: epoch, eventId: "large", time: epoch + i, value: value() })
          )
        )
        const prune = (maxBytes: number) => store.prune({ keepMillis: 1e12, maxBytes, isHistoryApart: true })
        const read = readAll(device.projectId)
        const [first] = yield* read
        yield* prune(1e9)
        assert.lengthOf(yield* read, 40)
        // A part that is in use may have to end first.
        for (let i = 0; i < 10 && (yield* read).length > 20; i++) yield* prune(2_000_000)
        assert.isAtMost((yield* read).length, 20)
        assert.isTrue((yield* store.read({ projectId: device.projectId, after: first!.id, limit: 1 })).isGap)
      }))
  })

/** Begins a transaction that records `first`, and `last` when the returned effect has run; returns its fiber with it. */
const beginTransaction = Effect.fnUntraced(function*(
  first: ReadonlyArray<DomainEvent>,
  last: ReadonlyArray<DomainEvent>
) {
  const store = yield* FeedStore
  const [begun, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const fiber = yield* Effect.forkChild(store.commit(
    store.append(first).pipe(
      Effect.andThen(Deferred.succeed(begun, undefined)),
      Effect.andThen(Deferred.await(ends))
    ),
    () => last
  ))
  yield* Deferred.await(begun)
  return [fiber, Deferred.succeed(ends, undefined)] as const
})

/**
 * Lets a fiber run beside an open transaction, and returns whether it has ended. In a
 * store whose transactions take turns it waits for the open one.
 */
const letRun = (fiber: Fiber.Fiber<unknown, unknown>) =>
  Effect.map(Effect.timeoutOption(Fiber.await(fiber), "200 millis"), Option.isSome)

/** The entries after a place, read in pages. */
const readAll = Effect.fnUntraced(function*(
  projectId: ProjectId | undefined,
  after: FeedPlace = feedStart,
  select?: FeedSelection,
  limit = 1000
) {
  const store = yield* FeedStore
  const entries: Array<FeedEntry> = []
  let place = after
  while (true) {
    const page = yield* store.read({ projectId, after: place, limit, select })
    assert.isAtMost(page.entries.length, limit)
    entries.push(...page.entries)
    place = page.next
    if (!page.hasMore) return entries
  }
})

const versionOf = ({ event }: FeedEntry): number => event._tag === "DeviceStatusChanged" ? event.version : Number.NaN

const namesOf = ({ deviceId, deviceName, productKey, projectId }: Device) => ({
  deviceId,
  productKey,
  deviceName,
  projectId
})

const online = (device: Device, version: number): DomainEvent => ({
  _tag: "DeviceStatusChanged",
  device: namesOf(device),
  at: epoch,
  status: "online",
  version
})

const link = {
  address: "192.0.2.7",
  transport: "mqtt",
  nodeId: "node",
  gateway: { productKey: ProductKey.make("p"), deviceName: DeviceName.make("gateway") }
}

const offline = (device: Device, version: number): DomainEvent => ({
  _tag: "DeviceStatusChanged",
  device: namesOf(device),
  at: epoch,
  status: "offline",
  version,
  link,
  reason: "it left"
})

const replaced = (device: Device): DomainEvent => ({
  _tag: "ConnectionReplaced",
  device: namesOf(device),
  at: epoch,
  link
})

const lifecycle = (device: Device): DomainEvent & { readonly _tag: "DeviceLifecycle" } => ({
  _tag: "DeviceLifecycle",
  device: namesOf(device),
  at: epoch,
  action: "enable"
})

const executed = ({ projectId }: Pick<Product, "projectId">): DomainEvent => ({
  _tag: "SceneExecuted",
  projectId,
  device: null,
  at: epoch,
  sceneId: SceneId.make("scene"),
  sceneName: "Cold",
  executionId: "execution",
  status: "succeeded",
  reason: ""
})

const everyKind = (of: Device): ReadonlyArray<DomainEvent> => {
  const device = namesOf(of)
  const { projectId, ...named } = device
  return [
    online(of, 7),
    offline(of, 8),
    replaced(of),
    {
      _tag: "PropertiesReported",
      device,
      at: epoch + 1,
      properties: { t: { value: 1e-300, time: 0 }, u: { value: "half \ud800", time: 8.64e15 } },
      earlier: [{ propertyId: "t", time: 3, value: null }]
    },
    { _tag: "EventReported", device, at: epoch, eventId: "e", time: 5, value: ["NUL \0"] },
    { _tag: "CommandReplied", device, at: epoch, messageId: 5, code: 200, message: "ok", data: { a: 1 } },
    {
      _tag: "UpgradeProgressed",
      device,
      at: epoch,
      taskId: 3,
      module: "main",
      version: "2",
      status: "failed",
      step: -1,
      reason: "no room"
    },
    lifecycle(of),
    { _tag: "TopologyChanged", device, at: epoch, action: "create", subDevices: [named] },
    executed({ projectId }),
    { ...executed({ projectId }), device: named } as DomainEvent
  ]
}

const nextVersion = (shadow: Shadow): Shadow => ({ ...shadow, version: shadow.version + 1, updatedAt: epoch })

const commit = (
  { deviceId }: Device,
  happened: ReadonlyArray<DomainEvent>,
  change: (shadow: Shadow) => Shadow,
  replies: ReadonlyArray<DomainEvent> = []
) =>
  UplinkStore.use((store) =>
    store.commit({
      devices: [{ deviceId, update: (shadow) => [undefined, change(shadow), { happened, reactions: [] }] }],
      commands: [],
      happened: replies
    })
  )
