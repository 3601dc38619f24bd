import {
  type Command,
  Commands,
  defaultProjectId,
  delta,
  type Device,
  DeviceCloud,
  type DeviceConnection,
  DeviceId,
  deviceIdentity,
  Devices,
  DeviceSessions,
  type DownlinkMessage,
  type Json,
  maxWaiting,
  NodeBus,
  Shadows,
  StoreError,
  ThingModels,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Logger, Queue } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { cloudWith } from "./FaultyCloud.ts"

const tsl = readFileSync(new URL("./fixtures/air-conditioner.tsl.json", import.meta.url), "utf8")

const createDevice = Effect.flatMap(TestCloud, (cloud) => cloud.createDevice())

const createModelled = Effect.gen(function*() {
  const cloud = yield* TestCloud
  const product = yield* cloud.createProduct()
  yield* (yield* ThingModels).importFrom(defaultProjectId, product.productKey, "tsl", tsl)
  return yield* cloud.createDevice(product)
})

const connect = (device: Device, options?: SimulatedDevice.ConnectOptions) => SimulatedDevice.connect(device, options)

const set = ({ deviceId }: Device, params: Readonly<Record<string, Json>>, ttl?: number) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params, { ttl }))

const call = ({ deviceId }: Device, serviceId: string, params: Readonly<Record<string, Json>> = {}) =>
  Effect.flatMap(Commands, (commands) => commands.callService(defaultProjectId, deviceId, serviceId, params))

const stored = ({ deviceId, messageId }: Command) =>
  Effect.flatMap(Commands, (commands) => commands.get(defaultProjectId, deviceId, messageId))

/** What the ledger says, when everything that is on its way to it has been stored. */
const stateOf = (command: Command) =>
  Effect.andThen(TestClock.adjust("1 milli"), Effect.map(stored(command), ({ state }) => state))

const take = ({ received }: SimulatedDevice.SimulatedDevice) => Queue.take(received)

/** What has been received so far. */
const all = ({ received }: SimulatedDevice.SimulatedDevice) =>
  Effect.andThen(
    TestClock.adjust("1 milli"),
    Effect.flatMap(Queue.clear(received), (messages) => Effect.succeed([...messages]))
  )

/** Runs the effect, and lets time pass until it has ended. */
const whileTimePasses = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const running = yield* Effect.forkChild(effect)
  while (running.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
  return yield* Fiber.join(running)
})

/** Three devices. `attach` connects the second one through a transport that ends its connections by `close`. */
const closedBy = Effect.fnUntraced(function*(close: Effect.Effect<void>) {
  const sessions = yield* DeviceSessions
  const [first, broken, last] = [yield* createDevice, yield* createDevice, yield* createDevice]
  const device = deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId: broken.deviceId }))
  const attach = (deliver: DeviceConnection["deliver"]) =>
    sessions.attach({ device, ip: "127.0.0.1", deliver, backlog: () => undefined, close: () => close })
  return { sessions, first, broken, last, attach }
})

const methods = (messages: ReadonlyArray<DownlinkMessage>) => messages.map(({ method }) => method)

layer(TestCloud.layer)("what is asked of devices", (it) => {
  it.effect("a property is set on a connected device, and its reply ends the command", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const connected = yield* connect(device)
      const command = yield* set(device, { PowerSwitch: true, TargetTemperature: 20.5 })
      const message = yield* take(connected)
      assert.deepStrictEqual(message, {
        id: String(command.messageId),
        method: "thing.service.property.set",
        params: { PowerSwitch: 1, TargetTemperature: 20.5 }
      })
      assert.strictEqual(yield* stateOf(command), "acked")
      yield* connected.answer(message, 200, { done: true })
      const ended = yield* stored(command)
      assert.deepInclude(ended, { state: "succeeded", code: 200, data: { done: true } })
      const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
      // It is not desired any more than that, and not reported before the device says so.
      assert.deepStrictEqual([shadow.desired, shadow.reported], [{}, {}])
    }))

  it.effect("a call is checked each time it runs, and not when it is made", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      yield* connect(device)
      const { deviceId } = device
      const commands = yield* Commands
      // The model is at hand from now on.
      yield* Effect.flip(set(device, { Colour: "red" }))
      const calls = [
        commands.setProperties(defaultProjectId, deviceId, { Colour: "red" }),
        commands.callService(defaultProjectId, deviceId, "Dance", {}),
        commands.request(defaultProjectId, deviceId, null, { Colour: "red" })
      ]
      for (const call of calls) yield* Effect.flip<unknown, unknown, never>(call)
      const colour = { id: "Colour", name: "Colour", accessMode: "rw", dataType: { type: "text", length: 16 } }
      const dance = { id: "Dance", name: "Dance", inputData: [], outputData: [] }
      const model = JSON.stringify({ properties: [colour], services: [dance] })
      yield* (yield* ThingModels).importFrom(defaultProjectId, device.productKey, "metadata", model)
      for (const call of calls) yield* Effect.asVoid<unknown, unknown, never>(call)
    }))

  it.effect("a service is called, and fails when the device says so", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const connected = yield* connect(device)
      const command = yield* call(device, "TimeReset", { TimeZone: "UTC" })
      const message = yield* take(connected)
      assert.deepInclude(message, { method: "thing.service.TimeReset", params: { TimeZone: "UTC" } })
      yield* connected.answer(message, 100_001)
      assert.deepInclude(yield* stored(command), { state: "failed", code: 100_001 })
    }))

  it.effect("a reply whose code is no whole number has no effect", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const connected = yield* connect(device)
      const command = yield* call(device, "reboot")
      const message = yield* take(connected)
      const refused = yield* connected.send("thing.service.reboot_reply", { id: message.id, code: 200.5 })
      assert.strictEqual(refused.code, 460)
      assert.strictEqual(yield* stateOf(command), "acked")
      yield* connected.answer(message, 200)
      assert.deepInclude(yield* stored(command), { state: "succeeded", code: 200 })
    }))

  it.effect("the message of a reply is kept up to 1,024 characters, and none of them by half", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const connected = yield* connect(device)
      const said = "x".repeat(1023)
      for (
        const [message, kept] of [[`${said}ab`, `${said}a`], [`${said}😀`, said], [
          `${said.slice(1)}😀`,
          `${said.slice(1)}😀`
        ]]
      ) {
        const command = yield* call(device, "reboot")
        const { id } = yield* take(connected)
        yield* connected.send("thing.service.reboot_reply", { id, code: 200, message: message! })
        assert.strictEqual((yield* stored(command)).message, kept)
      }
    }))

  it.effect("a command has one end: what comes later is without effect", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const stranger = yield* connect(yield* createDevice)
      const connected = yield* connect(device)
      const command = yield* set(device, { a: 1 }, 60)
      const message = yield* take(connected)
      yield* stranger.answer(message, 200)
      assert.strictEqual(yield* stateOf(command), "acked")
      yield* connected.answer(message, 500)
      yield* connected.answer(message, 200)
      yield* TestClock.adjust("3 minutes")
      assert.deepInclude(yield* stored(command), { state: "failed", code: 500 })
      const unknown = yield* connected.send("thing.service.property.set_reply", { id: "x", code: 200 })
      assert.strictEqual(unknown.code, 460)
    }))

  it.effect("is sent, not acked, as long as the device has not confirmed it, and delivered again when it comes back", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const silent = yield* connect(device, { faults: { seed: 1, loseAcknowledgements: 1 } })
      const first = yield* set(device, { a: 1 })
      const second = yield* call(device, "reboot")
      yield* take(silent)
      assert.strictEqual(yield* stateOf(first), "sent")
      yield* silent.disconnect
      const third = yield* set(device, { a: 2 })
      assert.strictEqual(yield* stateOf(third), "queued")

      const back = yield* connect(device)
      const messages = yield* all(back)
      assert.deepStrictEqual(
        messages.filter(({ method }) => method !== "thing.shadow").map(({ id }) => id),
        [first, second, third].map(({ messageId }) => String(messageId))
      )
      assert.strictEqual(yield* stateOf(third), "acked")
      yield* back.disconnect
    }))

  it.effect("what the device has confirmed and not answered is delivered three times, and then has failed", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const connected = yield* connect(device)
      const command = yield* call(device, "reboot")
      const answered = yield* call(device, "ring")
      const [first, second] = [yield* take(connected), yield* take(connected)]
      assert.deepStrictEqual(methods([first, second]), ["thing.service.reboot", "thing.service.ring"])
      yield* connected.answer(second, 200)
      // Another command does not repeat it within the connection.
      yield* call(device, "ring", { again: 1 })
      assert.deepStrictEqual(methods(yield* all(connected)), ["thing.service.ring"])
      yield* connected.disconnect
      for (const deliveries of [2, 3]) {
        const back = yield* connect(device)
        const messages = yield* all(back)
        assert.deepStrictEqual(messages[0], first)
        assert.notInclude(messages.map(({ id }) => id), String(answered.messageId))
        assert.strictEqual(yield* stateOf(command), "acked")
        assert.deepInclude(yield* stored(command), { deliveries })
        yield* back.disconnect
      }
      const late = yield* connect(device)
      assert.strictEqual(yield* stateOf(command), "failed")
      assert.deepInclude(yield* stored(command), {
        deliveries: 3,
        code: null,
        message: "the device has not answered 3 deliveries"
      })
      assert.deepStrictEqual(yield* all(late), [])
      yield* late.answer(first, 200)
      assert.strictEqual(yield* stateOf(command), "failed")
    }))

  it.effect("an answer to the second delivery is the end of a command", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const deaf = yield* connect(device)
      const command = yield* call(device, "reboot")
      assert.strictEqual(yield* stateOf(command), "acked")
      yield* deaf.disconnect
      const back = yield* connect(device)
      yield* back.answer(yield* take(back), 200)
      assert.deepInclude(yield* stored(command), { state: "succeeded", deliveries: 2 })
    }))

  it.effect("a device that fetches its commands gets each three times, and has a minute for its answer", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const device = yield* createDevice
      const identity = deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId }))
      const command = yield* call(device, "reboot")
      const pull = Effect.andThen(
        Effect.map(commands.pull(identity), (messages) => messages.map(({ id }) => id)),
        (ids) => Effect.as(TestClock.adjust("1 second"), ids)
      )
      for (let i = 0; i < 3; i++) assert.deepStrictEqual(yield* pull, [String(command.messageId)])
      assert.deepStrictEqual(yield* pull, [])
      assert.deepInclude(yield* stored(command), { state: "sent", deliveries: 3 })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* pull, [])
      assert.deepInclude(yield* stored(command), { state: "failed", deliveries: 3 })
    }))

  it.effect("what cannot be delivered now is desired of the shadow; services only wait", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      yield* set(device, { mode: "eco", level: 1 })
      yield* set(device, { level: 2 })
      yield* call(device, "reboot")
      const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
      assert.deepStrictEqual(
        Object.entries(shadow.desired).map(([id, { value, version }]) => [id, value, version]),
        [["mode", "eco", 1], ["level", 2, 2]]
      )
      const messages = yield* all(yield* connect(device))
      assert.deepStrictEqual(methods(messages), [
        "thing.shadow",
        "thing.service.property.set",
        "thing.service.property.set",
        "thing.service.reboot"
      ])
      assert.deepInclude(messages[0]?.params, { state: { reported: {}, desired: { mode: "eco", level: 2 } } })
    }))

  it.effect("a value is not sent again when the device has reported the property since", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const session = yield* connect(device, { faults: { seed: 1, loseAcknowledgements: 1 } })
      const commands = [yield* set(device, { a: 1 }), yield* set(device, { b: 1 }), yield* set(device, { a: 1, c: 1 })]
      yield* all(session)
      yield* TestClock.adjust("1 second")
      yield* session.postProperties({ a: 1, b: 2 })
      yield* session.disconnect
      const messages = yield* all(yield* connect(device))
      assert.deepStrictEqual(messages.map(({ params }) => params), [{ c: 1 }])
      const states = yield* Effect.forEach(commands, stateOf)
      assert.deepStrictEqual(states, ["succeeded", "cancelled", "acked"])
    }))

  it.effect("a value is sent that is set in the millisecond in which the device has reported another one", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      yield* Effect.scoped(
        Effect.flatMap(connect(device), (connected) => connected.postProperties({ power: 0, target: 20 }))
      )
      const command = yield* set(device, { power: 1, target: 20 })
      const connected = yield* connect(device)
      const messages = yield* all(connected)
      const delivered = messages.find(({ id }) => id === String(command.messageId))
      assert.deepStrictEqual(delivered?.params, { power: 1 })
    }))

  it.effect("a value is sent that is set after a report of a device whose clock is ahead", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      yield* Effect.scoped(Effect.gen(function*() {
        const connected = yield* connect(device)
        const time = (yield* Clock.currentTimeMillis) + 180_000
        yield* connected.postProperties({ power: { value: 0, time }, target: { value: 20, time } })
      }))
      yield* TestClock.adjust("1 minute")
      const command = yield* set(device, { power: 1, target: 20 })
      yield* TestClock.adjust("4 minutes")
      const connected = yield* connect(device)
      const messages = yield* all(connected)
      const delivered = messages.find(({ id }) => id === String(command.messageId))
      assert.deepStrictEqual(delivered?.params, { power: 1, target: 20 })
    }))

  it.effect("a device whose clock is ahead is told what is desired after its report, and not what was before", () =>
    Effect.gen(function*() {
      const shadows = yield* Shadows
      const device = yield* createDevice
      const desire = (values: Readonly<Record<string, number>>) =>
        shadows.desire(defaultProjectId, device.deviceId, values)
      yield* desire({ target: 21 })
      yield* TestClock.adjust("1 second")
      yield* Effect.scoped(Effect.gen(function*() {
        const connected = yield* connect(device)
        const time = (yield* Clock.currentTimeMillis) + 180_000
        yield* connected.postProperties({ power: { value: 0, time }, target: { value: 20, time } })
      }))
      yield* TestClock.adjust("1 minute")
      const shadow = yield* desire({ power: 1 })
      assert.deepStrictEqual(Object.keys(delta(shadow)), ["power"])
      const connected = yield* connect(device)
      assert.deepInclude((yield* take(connected)).params, {
        state: { reported: { power: 0, target: 20 }, desired: { power: 1, target: 21 } }
      })
    }))

  it.effect("commands keep their order when many come at once, also while the device is coming back", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const waiting = yield* Effect.forEach(Array.from({ length: 20 }), (_, i) => call(device, "step", { i }))
      const connected = yield* connect(device)
      const live = yield* Effect.forEach(Array.from({ length: 50 }), (_, i) => call(device, "step", { i }), {
        concurrency: "unbounded"
      })
      const ids = (yield* all(connected)).map(({ id }) => Number(id))
      assert.deepStrictEqual(ids, ids.toSorted((a, b) => a - b))
      assert.strictEqual(new Set(ids).size, waiting.length + live.length)
    }))

  it.effect("expires after its time to live; with 0 it is for now or never", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const never = yield* set(device, { a: 1 }, 0)
      assert.strictEqual(yield* stateOf(never), "expired")
      const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
      assert.deepStrictEqual(shadow.desired, {})
      const short = yield* set(device, { a: 1 }, 60)
      const long = yield* set(device, { a: 2 })
      yield* TestClock.adjust("62 seconds")
      assert.deepStrictEqual([yield* stateOf(short), yield* stateOf(long)], ["expired", "queued"])
      const connected = yield* connect(device)
      assert.deepStrictEqual((yield* all(connected)).map(({ params }) => params).slice(1), [{ a: 2 }])
      const now = yield* set(device, { a: 3 }, 0)
      assert.deepStrictEqual((yield* take(connected)).params, { a: 3 })
      assert.strictEqual(yield* stateOf(now), "acked")
      // The device has a minute to answer what it got in time.
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* stateOf(now), "acked")
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual(yield* stateOf(now), "expired")
    }))

  it.effect("only a queued command can be cancelled", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const device = yield* createDevice
      const cancelled = yield* set(device, { a: 1 })
      yield* commands.cancel(defaultProjectId, device.deviceId, cancelled.messageId)
      assert.strictEqual(yield* stateOf(cancelled), "cancelled")
      const again = yield* Effect.flip(commands.cancel(defaultProjectId, device.deviceId, cancelled.messageId + 1000))
      assert.strictEqual(again._tag, "CommandNotFound")
      const connected = yield* connect(device)
      assert.deepStrictEqual(methods(yield* all(connected)), ["thing.shadow"])
      const delivered = yield* set(device, { a: 2 })
      yield* take(connected)
      yield* stateOf(delivered)
      const late = yield* Effect.flip(commands.cancel(defaultProjectId, device.deviceId, delivered.messageId))
      assert.strictEqual(late._tag, "CommandNotQueued")
    }))

  it.effect("a device has at most a hundred commands that have not ended", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const commands = yield* Effect.forEach(Array.from({ length: maxWaiting }), () => call(device, "step"))
      assert.strictEqual((yield* Effect.flip(call(device, "step")))._tag, "TooManyCommands")
      yield* (yield* Commands).cancel(defaultProjectId, device.deviceId, commands[5]!.messageId)
      yield* call(device, "step")
      const { items, total } = yield* (yield* Commands).list(defaultProjectId, device.deviceId, {
        page: 1,
        pageSize: 2
      })
      assert.strictEqual(total, maxWaiting + 1)
      assert.isAbove(items[0]!.messageId, items[1]!.messageId)
    }))

  it.effect("a device that confirms commands and answers none takes new ones in place of those of a minute ago", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const connected = yield* connect(device)
      const first: Array<Command> = []
      for (let i = 0; i < 90; i++) first.push(yield* call(device, "reboot", { i }))
      yield* TestClock.adjust("1 minute")
      for (let i = 90; i < 100; i++) yield* call(device, "reboot", { i })
      yield* all(connected)
      const latest = yield* call(device, "reboot", { i: 100 })
      assert.deepStrictEqual((yield* all(connected)).map(({ id }) => id), [String(latest.messageId)])
      // The oldest ten are over; the others may still be answered.
      const states = yield* Effect.forEach(first, stored)
      assert.deepStrictEqual(states.map(({ state }) => state), [
        ...Array.from({ length: 10 }, () => "failed"),
        ...Array.from({ length: 80 }, () => "acked")
      ])
      assert.strictEqual(states[0]!.message, "the device has not answered, and others need the place")
      for (let i = 0; i < 89; i++) yield* call(device, "reboot", { i })
      // What is left was confirmed within a minute.
      assert.strictEqual((yield* Effect.flip(call(device, "reboot")))._tag, "TooManyCommands")
      yield* connected.disconnect
    }))

  it.effect("names the member of a property and the input of a service that does not fit", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const issuesOf = <A, E extends { readonly _tag: string }, R>(refused: Effect.Effect<A, E, R>) =>
        Effect.map(Effect.flip(refused), (error) => "issues" in error ? error.issues : error._tag)
      assert.deepStrictEqual(yield* issuesOf(set(device, { HSBColor: { Hue: 361 } })), [
        { path: ["params", "HSBColor", "Hue"], message: "expected a whole number from 0 to 360" }
      ])
      assert.deepStrictEqual(yield* issuesOf(call(device, "TimeReset", { TimeZone: 5 })), [
        { path: ["params", "TimeZone"], message: "expected text of at most 64 bytes" }
      ])
      assert.deepStrictEqual(yield* issuesOf(call(device, "TimeReset", { Missing: 5 })), [
        { path: ["params", "Missing"], message: "the thing model has no such member" }
      ])
    }))

  it.effect("refuses what the model does not admit, and says what", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const invalid = yield* Effect.flip(set(device, { CurrentTemperature: 20, WindSpeed: 9, Missing: 1, Alias: "ok" }))
      assert.deepStrictEqual(invalid._tag === "InvalidValues" ? invalid.issues : [], [
        { path: ["params", "CurrentTemperature"], message: "the property cannot be set: it is read-only" },
        { path: ["params", "WindSpeed"], message: "expected one of 0, 1, 2, 3" },
        { path: ["params", "Missing"], message: "the thing model has no such property" }
      ])
      assert.strictEqual((yield* Effect.flip(call(device, "Missing")))._tag, "ElementNotFound")
      const input = yield* Effect.flip(call(device, "TimeReset", { TimeZone: 5 }))
      assert.strictEqual(input._tag, "InvalidValues")
      assert.strictEqual((yield* Effect.flip(call(device, "TimeReset", {})))._tag, "InvalidValues")
      const { total } = yield* (yield* Commands).list(defaultProjectId, device.deviceId, { page: 1, pageSize: 1 })
      assert.strictEqual(total, 0)
    }))

  const request = (
    { deviceId }: Device,
    serviceId: string | null,
    params: Readonly<Record<string, Json>>,
    options: { readonly wait?: number } = {}
  ) => Effect.flatMap(Commands, (commands) => commands.request(defaultProjectId, deviceId, serviceId, params, options))

  it.effect("the caller of a synchronous service, or of any call with a wait, gets the reply", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const connected = yield* connect(device)
      const calls = [
        [request(device, "Measure", {}), "thing.service.Measure", true],
        [request(device, null, { PowerSwitch: 1 }, { wait: 30 }), "thing.service.property.set", undefined]
      ] as const
      for (const [call, method, synchronous] of calls) {
        const calling = yield* Effect.forkScoped(call)
        const message = yield* take(connected)
        assert.deepStrictEqual([message.method, message.synchronous], [method, synchronous])
        yield* connected.answer(message, 100_002, { why: "busy" })
        const { command, hasWaited } = yield* Fiber.join(calling)
        assert.isTrue(hasWaited)
        assert.deepInclude(command, {
          messageId: Number(message.id),
          state: "failed",
          code: 100_002,
          data: { why: "busy" }
        })
      }
    }))

  it.effect("a device that does not reply in time fails its caller, and the command goes on", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const connected = yield* connect(device)
      const calling = yield* Effect.forkScoped(Effect.flip(request(device, "Measure", {})))
      const message = yield* take(connected)
      yield* TestClock.adjust("7 seconds")
      assert.isUndefined(calling.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const refused = yield* Fiber.join(calling)
      assert.deepInclude(refused, { _tag: "NoReply", messageId: message.id })
      yield* connected.answer(message, 200)
      const { items } = yield* (yield* Commands).list(defaultProjectId, device.deviceId, { page: 1, pageSize: 9 })
      assert.deepStrictEqual(items.map(({ messageId, state }) => [String(messageId), state]), [[
        message.id,
        "succeeded"
      ]])
    }))

  it.effect("who waits for a device that is deleted meanwhile is told that it is gone", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      const connected = yield* connect(device)
      const calling = yield* Effect.forkScoped(Effect.flip(request(device, "Measure", {})))
      yield* take(connected)
      yield* (yield* Devices).remove(defaultProjectId, device.deviceId)
      yield* TestClock.adjust("8 seconds")
      assert.strictEqual((yield* Fiber.join(calling))._tag, "DeviceNotFound")
    }))

  it.effect("nobody waits for a device without a connection, unless the call itself waits", () =>
    Effect.gen(function*() {
      const device = yield* createModelled
      for (const call of [request(device, "Measure", {}), request(device, null, { PowerSwitch: 1 }, { wait: 1 })]) {
        assert.strictEqual((yield* Effect.flip(call))._tag, "DeviceNotConnected")
      }
      for (const wait of [-1, 31, Number.NaN]) {
        assert.strictEqual((yield* Effect.flip(request(device, "Measure", {}, { wait })))._tag, "InvalidInput")
      }
      const { total } = yield* (yield* Commands).list(defaultProjectId, device.deviceId, { page: 1, pageSize: 9 })
      assert.strictEqual(total, 0)
      const { command, hasWaited } = yield* request(device, "Measure", {}, { wait: 0 })
      assert.deepStrictEqual([command.state, hasWaited], ["queued", false])
      assert.deepInclude(yield* take(yield* connect(device)), { method: "thing.service.Measure", synchronous: true })
    }))

  it.effect("refuses what no device could take", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const deep = (levels: number): Json => {
        let value: Json = 1
        for (let i = 0; i < levels; i++) value = [value]
        return value
      }
      const tags = yield* Effect.forEach([
        Effect.flip(set(device, { a: deep(20_000) })),
        Effect.flip(call(device, "s", { a: deep(20_000) })),
        Effect.flip(call(device, "set")),
        Effect.flip(set(device, {})),
        Effect.flip(set(device, Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`p${i}`, i])))),
        Effect.flip(set(device, { a: "x".repeat(140_000) })),
        Effect.flip(set(device, { a: 1 }, -1)),
        Effect.flip(set(device, { a: 1 }, 604_801)),
        Effect.flip(call(device, "no such name")),
        Effect.flip(call(device, "s", { a: "x".repeat(140_000) })),
        Effect.flip(set({ ...device, deviceId: DeviceId.make("missing") }, { a: 1 }))
      ], Effect.map(({ _tag }) => _tag))
      assert.deepStrictEqual(tags, [...Array.from({ length: 10 }, () => "InvalidInput"), "DeviceNotFound"])
    }))

  it.effect("refuses values that are no object, and stores nothing of them", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const shadows = yield* Shadows
      const plain = yield* createDevice
      const modelled = yield* createModelled
      for (
        const values of [undefined, null, 5, "on", ["on"], new Map([["power", 1]])] as ReadonlyArray<
          unknown
        > as ReadonlyArray<never>
      ) {
        for (const { deviceId } of [plain, modelled]) {
          for (
            const [path, refused] of [
              [["params"], commands.setProperties(defaultProjectId, deviceId, values)],
              [["params"], commands.callService(defaultProjectId, deviceId, "reboot", values)],
              [["state", "desired"], shadows.desire(defaultProjectId, deviceId, values)]
            ] as const
          ) {
            assert.deepInclude(yield* Effect.flip<unknown, object, never>(refused), {
              _tag: "InvalidInput",
              issues: [{ path, message: "Expected an object" }]
            })
          }
          assert.strictEqual(
            (yield* commands.list(defaultProjectId, deviceId, { page: 1, pageSize: 1 })).total,
            0
          )
          assert.deepInclude((yield* shadows.get(defaultProjectId, deviceId)).shadow, { version: 0, desired: {} })
        }
      }
    }))

  it.effect("the shadow takes desired values by version, and a connected device is told", () =>
    Effect.gen(function*() {
      const shadows = yield* Shadows
      const device = yield* createModelled
      const { deviceId } = device
      const connected = yield* connect(device)
      const first = yield* shadows.desire(defaultProjectId, deviceId, { WindSpeed: 1, PowerSwitch: true })
      assert.deepInclude((yield* take(connected)).params, {
        state: { reported: {}, desired: { WindSpeed: 1, PowerSwitch: 1 } }
      })
      const conflict = yield* Effect.flip(shadows.desire(defaultProjectId, deviceId, { WindSpeed: 2 }, 99))
      assert.deepInclude(conflict, { _tag: "ShadowVersionConflict", version: first.version })
      const second = yield* shadows.desire(defaultProjectId, deviceId, { WindSpeed: null }, first.version)
      assert.deepStrictEqual(Object.keys(second.desired), ["PowerSwitch"])
      const refused = yield* Effect.flip(shadows.desire(defaultProjectId, deviceId, { CurrentTemperature: 1 }))
      assert.strictEqual(refused._tag, "InvalidValues")
      const plain = yield* createDevice
      const many = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`p${i}`, i]))
      for (const desired of [many, { long: "x".repeat(263_000) }]) {
        const full = yield* Effect.flip(shadows.desire(defaultProjectId, plain.deviceId, desired))
        assert.strictEqual(full._tag, "InvalidInput")
      }
      assert.deepInclude(yield* shadows.get(defaultProjectId, plain.deviceId), {
        shadow: { deviceId: plain.deviceId, version: 0, reported: {}, desired: {}, updatedAt: null }
      })
    }))

  it.effect("a call that finds that the device has become ready leaves in its turn, and so do those after it", () =>
    Effect.gen(function*() {
      const sessions = yield* DeviceSessions
      const device = yield* createDevice
      const received: Array<string> = []
      let isReady = false
      let waiting: Array<() => void> = []
      const session = yield* sessions.attach({
        device: deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId })),
        ip: "127.0.0.1",
        deliver: ({ id }) => Effect.sync(() => void received.push(id)),
        backlog: () => {
          if (!isReady) {
            return Effect.callback<void>((resume) => {
              waiting.push(() => resume(Effect.void))
            })
          }
          // As on a connection: whoever finds out lets those go who wait.
          const released = waiting
          waiting = []
          for (const release of released) release()
          return undefined
        },
        close: () => Effect.void
      })
      const before = [yield* call(device, "first"), yield* call(device, "second")]
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(received, [])
      isReady = true
      const after = yield* Effect.forEach(["third", "fourth", "fifth"], (name) => call(device, name))
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(received, [...before, ...after].map(({ messageId }) => String(messageId)))
      assert.strictEqual(after[2]!.state, "sent")
      yield* sessions.detach(session)
    }))

  it.effect("a command that ends, or is overtaken, while it waits for the device to be ready is never delivered", () =>
    Effect.gen(function*() {
      const sessions = yield* DeviceSessions
      const device = yield* createDevice
      const received: Array<string> = []
      const ready = yield* Deferred.make<void>()
      let isReady = false
      const earlier = yield* set(device, { d: 1 })
      const calls = [yield* call(device, "first"), yield* call(device, "second"), yield* call(device, "third")]
      const brief = yield* set(device, { a: 1 }, 1)
      const [overtaken, outdone] = [yield* set(device, { b: 1 }), yield* set(device, { c: 1 })]
      const session = yield* sessions.attach({
        device: deviceIdentity(yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId })),
        ip: "127.0.0.1",
        deliver: ({ id, method }) => Effect.sync(() => void (method === "thing.shadow" || received.push(id))),
        backlog: () => isReady ? undefined : Deferred.await(ready),
        close: () => Effect.void
      })
      yield* TestClock.adjust("1 milli")
      for (const { messageId } of [calls[0]!, calls[2]!]) {
        yield* (yield* Commands).cancel(defaultProjectId, device.deviceId, messageId)
      }
      yield* TestClock.adjust("2 seconds")
      yield* (yield* Uplink).submit({
        device: session.connection.device,
        method: "thing.event.property.post",
        params: { b: 1, c: 2 },
        receivedAt: yield* Clock.currentTimeMillis
      })
      isReady = true
      yield* Deferred.succeed(ready, undefined)
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(received, [earlier, calls[1]!].map(({ messageId }) => String(messageId)))
      const states = yield* Effect.forEach([earlier, ...calls, brief, overtaken, outdone], stateOf)
      assert.deepStrictEqual(states, ["sent", "cancelled", "sent", "cancelled", "expired", "succeeded", "cancelled"])
      yield* sessions.detach(session)
    }))

  it.effect("a transport that fails at one device keeps nothing from others, nor from the next connection", () =>
    Effect.gen(function*() {
      const { attach, broken, first, last, sessions } = yield* closedBy(Effect.die(new Error("the port is gone")))
      const fails = () => {
        throw new Error("the port is gone")
      }
      yield* attach(fails)
      const others = [yield* connect(first), yield* connect(last)]
      const commands = yield* Effect.forEach(
        [first, broken, last],
        (device) => set(device, { power: 1 }),
        { concurrency: "unbounded" }
      )
      for (const other of others) assert.deepStrictEqual((yield* take(other)).params, { power: 1 })

      const received: Array<string> = []
      const session = yield* attach(({ id }) => Effect.sync(() => void received.push(id)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received, [String(commands[1]!.messageId)])
      yield* sessions.detach(session)

      yield* attach(fails)
      yield* sessions.cutOff(
        [broken, ...others.map(({ device }) => device)].map(({ deviceId }) => deviceId),
        "disabled"
      )
      for (const other of others) assert.strictEqual(yield* other.closed, "disabled")
    }))

  it.effect("a transport that does not return keeps nothing from others, nor from the next connection", () =>
    Effect.gen(function*() {
      const { attach, broken, first, last, sessions } = yield* closedBy(Effect.uninterruptible(Effect.never))
      yield* attach(() => Effect.never)
      const others = [yield* connect(first), yield* connect(last)]
      const commands = yield* whileTimePasses(
        Effect.forEach([first, broken, last], (device) => set(device, { power: 1 }), { concurrency: "unbounded" })
      )
      for (const other of others) assert.deepStrictEqual((yield* take(other)).params, { power: 1 })

      const received: Array<string> = []
      const session = yield* attach(({ id, method }) =>
        Effect.sync(() => void (method === "thing.shadow" || received.push(id)))
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received, [String(commands[1]!.messageId)])

      yield* whileTimePasses(sessions.cutOff([broken, first, last].map(({ deviceId }) => deviceId), "disabled"))
      for (const other of others) assert.strictEqual(yield* other.closed, "disabled")
      yield* sessions.detach(session)
    }))
})

it.effect("what is asked after a clock that was ahead is right again is sent, whatever was reported before", () =>
  Effect.gen(function*() {
    const device = yield* createDevice
    const right = yield* Clock.currentTimeMillis
    yield* TestClock.adjust("1 hour")
    yield* Effect.scoped(
      Effect.flatMap(connect(device), (connected) => connected.postProperties({ power: 0, target: 20 }))
    )
    yield* TestClock.setTime(right)
    yield* set(device, { power: 1 })
    yield* TestClock.adjust("1 minute")
    const [desired, command] = yield* all(yield* connect(device))
    assert.deepInclude(desired?.params, { state: { reported: { power: 0, target: 20 }, desired: { power: 1 } } })
    assert.deepStrictEqual(command?.params, { power: 1 })
  }).pipe(Effect.provide(TestCloud.layer)))

it.effect("a command whose time ends while the store is away does not expire before its reply can come", () =>
  Effect.gen(function*() {
    const product = yield* Fixtures.createProduct()
    const identity = yield* Fixtures.createDevice(product)
    const device = yield* SimulatedDevice.connect(identity)
    const commands = yield* Commands
    const call = commands.callService(product.projectId, identity.deviceId, "calibrate", {}, { ttl: 10 })
    const called = [yield* call, yield* call]
    yield* TestClock.adjust("10 seconds")
    const [at, after] = [yield* take(device), yield* take(device)].map(({ id }) =>
      device.send("thing.service.calibrate_reply", { id, code: 200 })
    )
    const replied = yield* Effect.forkChild(at!)
    yield* TestClock.adjust("130 seconds")
    yield* Fiber.join(replied)
    yield* after!
    const states = yield* Effect.forEach(
      called,
      ({ messageId }) => commands.get(product.projectId, identity.deviceId, messageId)
    )
    assert.deepStrictEqual(states.map(({ state }) => state), ["succeeded", "succeeded"])
  }).pipe(Effect.provide(
    cloudWith({
      on: ["CommandStore.expire", "CommandStore.advance", "UplinkStore.commit"],
      does: "fail",
      during: ["5 seconds", "90 seconds"]
    })
  )))

it.effect("a command that was delivered before all servers stopped waits a minute for its reply when one is back", () =>
  Effect.gen(function*() {
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
    const [product, identity, answered, silent] = yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      const device = yield* SimulatedDevice.connect(identity)
      const { callService } = yield* Commands
      const call = callService(product.projectId, identity.deviceId, "calibrate", {}, { ttl: 10 })
      const called = [yield* call, yield* call] as const
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* take(device)).id, String(called[0].messageId))
      return [product, identity, ...called] as const
    }).pipe((before) => Effect.scoped(Effect.flatMap(node, (cloud) => Effect.provideContext(before, cloud))))
    yield* TestClock.adjust("1 hour")
    yield* Effect.gen(function*() {
      const device = yield* SimulatedDevice.connect(identity)
      const { get } = yield* Commands
      const stateOf = ({ messageId }: Command) =>
        Effect.map(get(product.projectId, identity.deviceId, messageId), ({ state }) => state)
      yield* TestClock.adjust("50 seconds")
      yield* device.send("thing.service.calibrate_reply", { id: String(answered.messageId), code: 200 })
      assert.deepStrictEqual([yield* stateOf(answered), yield* stateOf(silent)], ["succeeded", "acked"])
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(yield* stateOf(silent), "expired")
    }).pipe((after) => Effect.flatMap(node, (cloud) => Effect.provideContext(after, cloud)))
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer))))

it.effect("the log says once that other nodes cannot be told of commands, however many there are", () =>
  Effect.gen(function*() {
    const logged: Array<unknown> = []
    const log = Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()[0]))])
    const away = Effect.fail(
      new StoreError({ operation: "NodeBus.publish", retryable: true, cause: new Error("away") })
    )
    const DeafBus = Layer.effect(
      NodeBus,
      Effect.map(NodeBus, (bus) => NodeBus.of({ ...bus, publish: () => away }))
    ).pipe(Layer.provideMerge(StorageMemory.layerNode))
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(DeafBus), Layer.provideMerge(log))))
    const [owner, other] = [yield* node, yield* node]
    const product = yield* Effect.provideContext(Fixtures.createProduct(), owner)
    const identity = yield* Effect.provideContext(Fixtures.createDevice(product), owner)
    yield* Effect.provideContext(SimulatedDevice.connect(identity), owner)
    yield* TestClock.adjust("2 seconds")
    yield* Effect.gen(function*() {
      const { callService } = yield* Commands
      for (let i = 0; i < 5; i++) {
        yield* callService(product.projectId, identity.deviceId, "calibrate", {}, { ttl: 10 })
        yield* TestClock.adjust("1 second")
      }
    }).pipe((calls) => Effect.provideContext(calls, other))
    assert.lengthOf(logged.filter((line) => /told of commands/.test(String(line))), 1)
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer))))
