/**
 * The laws of `CommandStore`.
 */
import {
  type Command,
  type CommandProgress,
  type CommandState,
  CommandStore,
  type Device,
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  type Enqueue,
  type Enqueued,
  maxWaiting,
  type OwnerClaim,
  PresenceStore,
  ShadowStore,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, newCommand, unique } from "./Samples.ts"

const item = (
  device: Pick<Device, "deviceId" | "projectId">,
  fields: Partial<Enqueue> & { readonly expiresAt?: number; readonly createdAt?: number } = {}
): Enqueue => {
  const { createdAt = epoch, expiresAt = epoch + 60_000, ...rest } = fields
  return { command: newCommand(device, { createdAt, expiresAt }), ...rest }
}

const enqueueAll = Effect.fnUntraced(function*(...items: ReadonlyArray<Enqueue>) {
  return (yield* (yield* CommandStore).enqueue(items)).map((result) => {
    assert.isObject(result)
    return result as Enqueued
  })
})

const enqueue = (...items: ReadonlyArray<Enqueue>) =>
  Effect.map(enqueueAll(...items), (results) => results.map(({ command }) => command))

/** Connects a device through a node, and returns the epoch of its session. */
const connect = Effect.fnUntraced(function*({ deviceId }: Pick<Device, "deviceId">, nodeId = "node") {
  const presence = yield* PresenceStore
  const [outcome] = yield* presence.record([
    { _tag: "Online", deviceId, connectionId: unique("c"), nodeId, ip: "192.0.2.7", at: epoch }
  ])
  assert.notStrictEqual(outcome!._tag, "Ignored")
  return (outcome as { readonly claim?: OwnerClaim }).claim!
})

const step = ({ deviceId, messageId }: Command, state: CommandState, at = epoch + 1): CommandProgress => ({
  deviceId,
  messageId,
  state,
  code: state === "succeeded" ? 200 : null,
  message: state,
  data: { [state]: true },
  at
})

const read = ({ deviceId, messageId }: Command) =>
  Effect.flatMap(CommandStore, (store) => Effect.map(store.get(deviceId, messageId), Option.getOrThrow))

const stateOf = (command: Command) => Effect.map(read(command), ({ state }) => state)

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores), { excludeTestServices: true })(`CommandStore: ${name}`, (it) => {
    it.effect("stores commands in the order of the items, with growing ids", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const [{ device: first }, { device: second }] = [yield* insertDevice, yield* insertDevice]
        const service: Enqueue = {
          command: { ...item(first).command, serviceId: "reboot", params: { "": "\0", deep: [{ a: null }] } }
        }
        const commands = yield* enqueue(item(first), item(second), service)
        const ids = commands.map(({ messageId }) => messageId)
        assert.deepStrictEqual(ids, ids.toSorted((a, b) => a - b))
        assert.deepStrictEqual(commands[2], {
          ...service.command,
          messageId: ids[2]!,
          state: "queued",
          synchronous: false,
          deliveries: 0,
          code: null,
          message: "",
          data: {},
          updatedAt: epoch
        })
        assert.deepStrictEqual(yield* store.get(first.deviceId, ids[2]!), Option.some(commands[2]!))
        assert.isTrue(Option.isNone(yield* store.get(second.deviceId, ids[0]!)))
      }))

    it.effect(`takes at most ${maxWaiting} open commands of a device, the first ones, and others beside them`, () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const [{ device }, { device: other }] = [yield* insertDevice, yield* insertDevice]
        const many = Array.from({ length: maxWaiting + 5 }, () => item(device))
        const missing = item({ ...device, deviceId: DeviceId.make("missing") })
        const results = yield* store.enqueue([...many, item(other), missing])
        assert.deepStrictEqual(results.map((result) => typeof result === "string" ? result : "stored"), [
          ...Array.from({ length: maxWaiting }, () => "stored"),
          ...Array.from({ length: 5 }, () => "full"),
          "stored",
          "no-device"
        ])
        assert.deepStrictEqual(yield* store.enqueue([item(device)]), ["full"])
        yield* store.advance([
          step((results[0] as Enqueued).command, "succeeded"),
          step((results[1] as Enqueued).command, "failed")
        ])
        yield* enqueue(item(device), item(device))
      }))

    it.effect("changes the shadow with the command, or neither", () =>
      Effect.gen(function*() {
        const shadows = yield* ShadowStore
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const desire: NonNullable<Enqueue["desire"]> = (shadow) => [undefined, {
          ...shadow,
          version: shadow.version + 1,
          desired: { a: { value: shadow.version, time: epoch } },
          updatedAt: epoch
        }]
        const plain = item(device)
        const commands = yield* enqueue(plain, item(device, { desire }), plain, item(device, { desire }))
        const ids = commands.map(({ messageId }) => messageId)
        assert.deepStrictEqual(ids, ids.toSorted((a, b) => a - b))
        assert.deepInclude(Option.getOrThrow(yield* shadows.get(device.deviceId)), {
          version: 2,
          desired: { a: { value: 1, time: epoch } }
        })
        yield* enqueue(...Array.from({ length: maxWaiting - 4 }, () => plain))
        assert.deepStrictEqual(yield* store.enqueue([item(device, { desire })]), ["full"])
        assert.strictEqual(Option.getOrThrow(yield* shadows.get(device.deviceId)).version, 2)
      }))

    it.effect("moves commands forward only, and keeps their one end", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const [{ device }, { device: stranger }] = [yield* insertDevice, yield* insertDevice]
        const [command, other] = (yield* enqueue(item(device), item(device))) as [Command, Command]
        yield* store.advance([step({ ...command, deviceId: stranger.deviceId }, "failed")])
        // A step that names another device has no effect, before and after the step of the device itself.
        const foreign = step({ ...command, deviceId: stranger.deviceId }, "failed")
        yield* store.advance([foreign, step(command, "acked"), step(other, "sent"), foreign])
        yield* store.advance([step(command, "sent"), step(other, "acked"), step(other, "succeeded", epoch + 9)])
        assert.deepStrictEqual([yield* stateOf(command), yield* stateOf(other)], ["acked", "succeeded"])
        yield* store.advance([step(other, "failed"), step(other, "expired"), step(other, "sent")])
        const ended = Option.getOrThrow(yield* store.get(device.deviceId, other.messageId))
        assert.deepInclude(ended, {
          state: "succeeded",
          code: 200,
          message: "succeeded",
          data: { succeeded: true },
          updatedAt: epoch + 9
        })
      }))

    it.effect("takes the outcomes of commands together with shadows, and alone", () =>
      Effect.gen(function*() {
        const uplink = yield* UplinkStore
        const { device } = yield* insertDevice
        const [first, second, third] = (yield* enqueue(item(device), item(device), item(device))) as [
          Command,
          Command,
          Command
        ]
        yield* uplink.commit({
          // A device that is gone takes nothing from the others.
          devices: [device.deviceId, DeviceId.make("missing")].map((deviceId) => ({
            deviceId,
            update: (shadow) => [
              undefined,
              { ...shadow, version: 1, updatedAt: epoch },
              { happened: [], reactions: [] }
            ]
          })),
          commands: [step(first, "succeeded"), step(third, "acked")]
        })
        yield* uplink.commit({ devices: [], commands: [step(second, "failed")] })
        assert.deepStrictEqual(
          yield* Effect.forEach([first, second, third], stateOf),
          ["succeeded", "failed", "acked"]
        )
        const { version } = Option.getOrThrow(yield* (yield* ShadowStore).get(device.deviceId))
        assert.strictEqual(version, 1)
      }))

    it.effect("counts each step to sent as a delivery, until the command has ended", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const [{ device }, { device: stranger }] = [yield* insertDevice, yield* insertDevice]
        const { command: fields } = item(device)
        const claim = yield* connect(device)
        const [command, atOnce] = (yield* enqueue(
          { command: { ...fields, synchronous: true } },
          { command: fields, epoch: claim.epoch }
        )) as [Command, Command]
        assert.deepStrictEqual(
          [command, atOnce].map(({ deliveries, synchronous }) => [deliveries, synchronous]),
          [[0, true], [1, false]]
        )
        const read = Effect.map(store.get(device.deviceId, command.messageId), Option.getOrThrow)
        yield* store.advance([step(command, "sent"), step(command, "acked"), step(command, "sent", epoch + 2)])
        assert.deepStrictEqual(yield* store.get(device.deviceId, atOnce.messageId), Option.some(atOnce))
        assert.deepInclude(yield* read, { state: "acked", message: "acked", deliveries: 2, synchronous: true })
        yield* store.advance([
          step({ ...command, deviceId: stranger.deviceId }, "sent"),
          step(command, "sent", epoch + 3)
        ])
        assert.deepInclude(yield* read, { state: "acked", deliveries: 3, updatedAt: epoch + 3 })
        // To say it again is no progress.
        yield* store.advance([step(command, "acked", epoch + 4)])
        assert.deepInclude(yield* read, { state: "acked", deliveries: 3, updatedAt: epoch + 3 })
        yield* store.advance([step(command, "succeeded", epoch + 4)])
        yield* store.advance([step(command, "sent", epoch + 5)])
        assert.deepInclude(yield* read, { state: "succeeded", deliveries: 3, updatedAt: epoch + 4 })
      }))

    it.effect("counts a delivery of a command that the device has answered, noted or not", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const commands = yield* enqueue(item(device), item(device), item(device), item(device))
        const [answered, notedLater, notedBefore, endedAlone] = commands as [Command, Command, Command, Command]
        yield* store.advance([step(answered, "succeeded"), step(endedAlone, "cancelled")])
        yield* store.advance([step(notedLater, "succeeded"), step(notedLater, "sent")])
        yield* store.advance([step(notedBefore, "sent"), step(notedBefore, "succeeded"), step(notedBefore, "sent")])
        const read = ({ messageId }: Command) =>
          Effect.map(store.get(device.deviceId, messageId), (found) => Option.getOrThrow(found).deliveries)
        assert.deepStrictEqual(yield* Effect.forEach(commands, read), [1, 1, 1, 0])
      }))

    it.effect("knows what has not ended and may still be delivered", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        const commands = yield* enqueue(
          item(device),
          item(device),
          item(device, { expiresAt: epoch + 10 }),
          item(device),
          item(device),
          item(device)
        )
        const [sent, acked, , failed, succeeded, queued] = commands as [
          Command,
          Command,
          Command,
          Command,
          Command,
          Command
        ]
        yield* store.advance([
          step(sent, "sent"),
          step(acked, "acked"),
          step(failed, "failed"),
          step(succeeded, "succeeded")
        ])
        const unfinished = (options: { readonly after?: number; readonly now?: number; readonly limit?: number }) =>
          Effect.map(
            store.unfinished({ deviceId, after: 0, now: epoch + 10, limit: 100, ...options }),
            (found) => found.map(({ messageId }) => messageId)
          )
        assert.deepStrictEqual(yield* unfinished({}), [sent.messageId, acked.messageId, queued.messageId])
        assert.strictEqual((yield* unfinished({ now: epoch })).length, 4)
        assert.deepStrictEqual(yield* unfinished({ after: acked.messageId }), [queued.messageId])
        assert.deepStrictEqual(yield* unfinished({ limit: 1 }), [sent.messageId])
        assert.deepStrictEqual(yield* unfinished({ after: sent.messageId, limit: 1 }), [acked.messageId])
        assert.deepStrictEqual(
          yield* store.unfinished({ deviceId, after: 0, now: epoch + 10, limit: 100 }),
          yield* Effect.forEach([sent, acked, queued], read)
        )
      }))

    it.effect("says who owns the device, and stores as sent what goes through that session alone", () =>
      Effect.gen(function*() {
        const { device } = yield* insertDevice
        const through = (epoch: number) =>
          Effect.map(enqueueAll({ ...item(device), epoch }), ([result]) => {
            const { command, owner } = result!
            return { state: command.state, deliveries: command.deliveries, owner }
          })
        assert.deepStrictEqual(yield* through(0), { state: "queued", deliveries: 0, owner: undefined })
        const { epoch: first } = yield* connect(device, "one")
        assert.deepStrictEqual(yield* through(first), {
          state: "sent",
          deliveries: 1,
          owner: { nodeId: "one", epoch: first }
        })
        const { epoch: second } = yield* connect(device, "two")
        const owner = { nodeId: "two", epoch: second }
        assert.deepStrictEqual(yield* through(first), { state: "queued", deliveries: 0, owner })
        assert.deepStrictEqual(yield* through(second), { state: "sent", deliveries: 1, owner })
        const connectionId = unique("c")
        const presence = yield* PresenceStore
        yield* presence.record([
          { _tag: "Online", deviceId: device.deviceId, connectionId, nodeId: "three", ip: "192.0.2.7", at: epoch }
        ])
        const third = (yield* presence.connectionsOf([device.deviceId])).get(device.deviceId)!.epoch
        yield* presence.record([{ _tag: "Offline", deviceId: device.deviceId, connectionId, at: epoch + 1 }])
        assert.deepStrictEqual(yield* through(third), { state: "queued", deliveries: 0, owner: undefined })
      }))

    it.effect("gives the commands of a device ids in the order of the commits, and says which was before", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const devices = [(yield* insertDevice).device, (yield* insertDevice).device] as const
        const [first] = devices
        assert.strictEqual((yield* connect(first)).lastCommand, 0)
        const calls = Array.from({ length: 30 }, (_, i) => item(devices[i % 2]!))
        const results = (yield* Effect.forEach(
          // One call takes its commands in another order than the next one.
          calls.map((call, i) => [call, calls[i + 1] ?? calls[0]!]),
          (items) => store.enqueue(items),
          { concurrency: "unbounded" }
        )).flat() as ReadonlyArray<Enqueued>
        for (const { deviceId } of devices) {
          const own = results.filter(({ command }) => command.deviceId === deviceId)
            .toSorted((a, b) => a.command.messageId - b.command.messageId)
          const ids = own.map(({ command }) => command.messageId)
          assert.deepStrictEqual(own.map(({ previous }) => previous), [0, ...ids.slice(0, -1)])
          const { lastCommand } = yield* connect({ deviceId })
          assert.strictEqual(lastCommand, ids.at(-1))
          const owners = yield* (yield* PresenceStore).connectionsOf([deviceId])
          assert.strictEqual(owners.get(deviceId)!.lastCommand, lastCommand)
        }
      }))

    it.effect("takes one command of an origin for a device, also if it takes no other", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const [{ device }, { device: other }] = [yield* insertDevice, yield* insertDevice]
        const of = (to: Device): Enqueue => ({ command: newCommand(to, { origin: "call" }) })
        const [twice, again, elsewhere] = (yield* store.enqueue([of(device), of(device), of(other)])) as [
          Enqueued,
          Enqueued,
          Enqueued
        ]
        const known = { command: twice.command, previous: undefined, owner: undefined }
        assert.strictEqual(twice.previous, 0)
        assert.deepStrictEqual(again, known)
        assert.strictEqual(elsewhere.command.deviceId, other.deviceId)
        const [next] = (yield* store.enqueue([{ command: newCommand(other, { origin: "next" }) }])) as [Enqueued]
        assert.notStrictEqual(next.command.messageId, elsewhere.command.messageId)
        yield* store.enqueue(Array.from({ length: maxWaiting - 1 }, () => item(device)))
        assert.deepStrictEqual(yield* store.enqueue([item(device), of(device)]), ["full", known])
        yield* (yield* DeviceStore).update(device.projectId, device.deviceId, { enabled: false, updatedAt: epoch })
        assert.deepStrictEqual(yield* store.enqueue([of(device)]), [known])
      }))

    it.effect("takes no command for a device that is disabled", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        yield* (yield* DeviceStore).update(device.projectId, device.deviceId, { enabled: false, updatedAt: epoch })
        assert.deepStrictEqual(yield* store.enqueue([item(device), item(device)]), ["disabled", "disabled"])
      }))

    it.effect("cancels queued commands only", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const [queued, sent, acked] = (yield* enqueue(item(device), item(device), item(device))) as [
          Command,
          Command,
          Command
        ]
        yield* store.advance([step(sent, "sent"), step(acked, "acked")])
        const cancel = Effect.fnUntraced(function*(command: Command) {
          const cancelled = yield* store.cancel(device.deviceId, command.messageId, epoch + 5)
          assert.deepStrictEqual(cancelled, Option.some(yield* read(command)))
          return Option.getOrThrow(cancelled).state
        })
        assert.strictEqual(yield* cancel(queued), "cancelled")
        assert.strictEqual(yield* cancel(queued), "cancelled")
        assert.strictEqual(yield* cancel(sent), "sent")
        assert.strictEqual(yield* cancel(acked), "acked")
        assert.strictEqual((yield* read(queued)).updatedAt, epoch + 5)
        assert.notStrictEqual((yield* read(sent)).updatedAt, epoch + 5)
        assert.isTrue(Option.isNone(yield* store.cancel(DeviceId.make("missing"), queued.messageId, epoch)))
        const [waiting] = (yield* enqueue(item(device))) as [Command]
        const { device: stranger } = yield* insertDevice
        assert.isTrue(Option.isNone(yield* store.cancel(stranger.deviceId, waiting.messageId, epoch)))
        assert.deepInclude(yield* read(waiting), { state: "queued" })
      }))

    it.effect("expires what is due, what was delivered after a grace, a part at a time", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        // This time is earlier than the commands of other tests.
        const due = epoch - 1_000_000
        const commands = yield* enqueue(
          ...Array.from({ length: 5 }, () => item(device, { createdAt: due - 10, expiresAt: due }))
        )
        const [first, second, sent, later, acked] = commands as [Command, Command, Command, Command, Command]
        yield* store.advance([step(sent, "sent"), step(later, "succeeded"), step(acked, "acked")])
        const expire = (now: number, limit = 100) => store.expire({ now, grace: 500, limit })
        const one = [device.projectId]
        assert.deepStrictEqual(yield* expire(due - 1), [])
        assert.deepStrictEqual(yield* expire(due, 1), one)
        assert.deepStrictEqual(yield* expire(due), one)
        assert.deepStrictEqual([yield* stateOf(first), yield* stateOf(second), yield* stateOf(sent)], [
          "expired",
          "expired",
          "sent"
        ])
        assert.deepStrictEqual(yield* expire(due + 499), [])
        assert.deepStrictEqual(yield* expire(due + 500), [...one, ...one])
        assert.deepStrictEqual([yield* stateOf(sent), yield* stateOf(later)], ["expired", "succeeded"])
        const { updatedAt: _, ...delivered } = acked
        assert.deepStrictEqual(yield* read(acked), {
          ...delivered,
          state: "expired",
          message: "acked",
          data: { acked: true },
          updatedAt: due + 500
        })
      }))

    it.effect("removes commands that ended long ago, a part at a time, and no other", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        // This time is earlier than the commands of other tests.
        const old = epoch - 2_000_000
        const commands = yield* enqueue(
          ...Array.from({ length: 6 }, () => item(device, { createdAt: old, expiresAt: old + 5 }))
        )
        const [succeeded, failed, cancelled, later, queued, acked] = commands as [
          Command,
          Command,
          Command,
          Command,
          Command,
          Command
        ]
        yield* store.advance([
          step(succeeded, "succeeded", old + 1),
          step(failed, "failed", old + 2),
          step(later, "succeeded", old + 4),
          step(acked, "acked", old + 1)
        ])
        yield* store.cancel(device.deviceId, cancelled.messageId, old + 3)
        const prune = (before: number) => store.prune({ before, limit: 2 })
        assert.deepStrictEqual([yield* prune(old + 1), yield* prune(old + 4), yield* prune(old + 4)], [0, 2, 1])
        assert.deepStrictEqual(
          (yield* store.list(device.deviceId, { page: 1, pageSize: 10 })).items.map(({ messageId }) => messageId),
          [acked, queued, later].map(({ messageId }) => messageId)
        )
      }))

    it.effect("lists the commands of a device, newest first", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const commands = yield* enqueue(item(device), item(device), item(device, { createdAt: epoch + 1 }))
        yield* enqueue(item((yield* insertDevice).device, { createdAt: epoch + 2 }))
        yield* store.advance([step(commands[1]!, "succeeded")])
        const page = yield* store.list(device.deviceId, { page: 1, pageSize: 2 })
        assert.strictEqual(page.total, 3)
        assert.deepStrictEqual(page.items, yield* Effect.forEach([commands[2]!, commands[1]!], read))
        assert.deepStrictEqual(yield* store.list(device.deviceId, { page: 3, pageSize: 2 }), { items: [], total: 3 })
      }))

    it.effect("forgets the commands of a device with it", () =>
      Effect.gen(function*() {
        const store = yield* CommandStore
        const { device } = yield* insertDevice
        const [command] = yield* enqueue(item(device))
        yield* (yield* DeviceStore).remove(device.projectId, device.deviceId)
        assert.isTrue(Option.isNone(yield* store.get(device.deviceId, command!.messageId)))
        yield* store.advance([step(command!, "acked")])
      }))
  })
