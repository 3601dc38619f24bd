import {
  defaultProjectId,
  type Device,
  Feed,
  History,
  type Json,
  type Product,
  Shadows,
  ThingModels,
  Uplink
} from "@device-cloud/core"
import { type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"

const tsl = readFileSync(new URL("./fixtures/air-conditioner.tsl.json", import.meta.url), "utf8")

const always = { start: 0, end: 8.64e15, limit: 1000, order: "asc" } as const

const shadowOf = ({ deviceId }: Device) =>
  Effect.flatMap(Shadows, (shadows) => Effect.map(shadows.get(defaultProjectId, deviceId), ({ shadow }) => shadow))

const reportedBy = (device: Device) =>
  Effect.map(
    shadowOf(device),
    ({ reported }) => Object.fromEntries(Object.entries(reported).map(([id, { value }]) => [id, value]))
  )

const samplesOf = ({ deviceId }: Device, propertyId: string) =>
  Effect.flatMap(History, (history) =>
    Effect.map(
      history.properties(defaultProjectId, deviceId, propertyId, always),
      (samples) => samples.map(({ time, value }) => [time, value])
    ))

const eventsOf = ({ deviceId }: Device, eventId?: string) =>
  Effect.flatMap(History, (history) => history.events(defaultProjectId, deviceId, eventId, always))

const importModel = ({ productKey }: Product) =>
  Effect.flatMap(ThingModels, (models) => models.importFrom(defaultProjectId, productKey, "tsl", tsl))

/** A connected device, of a product with the model of an air conditioner. */
const connectModelled = (validateType: "weak" | "none" = "weak") =>
  Effect.gen(function*() {
    const cloud = yield* TestCloud
    const product = yield* cloud.createProduct({ validateType })
    yield* importModel(product)
    const device = yield* cloud.connect(yield* cloud.createDevice(product))
    return { product, device }
  })

const connectPlain = Effect.gen(function*() {
  const cloud = yield* TestCloud
  return yield* cloud.connect(yield* cloud.createDevice())
})

/** A transport may hand over values that no JSON has, and that a device inside the process does not send. */
const handOver = Effect.fnUntraced(function*(device: Device, method: string, params: unknown) {
  const receivedAt = yield* Clock.currentTimeMillis
  return yield* (yield* Uplink).submit({ device: { ...device, validateType: "weak" }, method, params, receivedAt })
})

/** The codes of the replies to messages. */
const codesOf = (
  device: SimulatedDevice.SimulatedDevice,
  method: string,
  all: ReadonlyArray<unknown>
) =>
  Effect.map(Effect.forEach(all, (params) => device.send(method, params)), (replies) => replies.map(({ code }) => code))

layer(TestCloud.layer)("what devices say", (it) => {
  it.effect("an empty list is replied to, and what others say beside it is stored once", () =>
    Effect.gen(function*() {
      const { device: sender } = yield* connectModelled("none")
      const bystanders = yield* Effect.forEach([1, 2, 3], () => connectPlain)
      const [reply] = yield* Effect.all(
        [
          sender.send("thing.event.property.history.post", []),
          ...bystanders.map((bystander) => bystander.send("thing.event.beat.post", { n: 1 }))
        ],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(reply?.code, 200)
      for (const { device } of bystanders) assert.lengthOf(yield* eventsOf(device, "beat"), 1)
    }))

  it.effect("weak products keep what fits the model and say why the rest was dropped", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      const reply = yield* device.postProperties({
        PowerSwitch: true,
        TargetTemperature: 99,
        WindSpeed: 2,
        Unknown: 1,
        HSBColor: { Hue: 361 },
        Timers: [1, 2],
        InstalledAt: 1536228947682
      })
      assert.strictEqual(reply.code, 200)
      assert.deepStrictEqual(reply.data, {
        TargetTemperature: "expected a number from 16 to 32",
        Unknown: "tsl parse: params not exist -> Unknown",
        HSBColor: "Hue: expected a whole number from 0 to 360"
      })
      assert.deepStrictEqual(yield* reportedBy(device.device), {
        PowerSwitch: 1,
        WindSpeed: 2,
        Timers: [1, 2],
        InstalledAt: "1536228947682"
      })
      assert.deepStrictEqual(yield* samplesOf(device.device, "TargetTemperature"), [])
      assert.strictEqual((yield* samplesOf(device.device, "PowerSwitch")).length, 1)
    }))

  it.effect("a report of which nothing is kept leaves the shadow as it was", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      yield* device.postProperties({ WindSpeed: 1 })
      const before = yield* shadowOf(device.device)
      yield* device.postProperties({ WindSpeed: 9 })
      yield* device.postProperties({})
      assert.deepStrictEqual(yield* shadowOf(device.device), before)
    }))

  it.effect("products of validate type none, and those without a model, keep everything", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled("none")
      const plain = yield* connectPlain
      for (const each of [device, plain]) {
        assert.deepStrictEqual((yield* each.postProperties({ Anything: { a: [1] } })).data, {})
        assert.strictEqual((yield* each.send("thing.event.Whatever.post", { x: 1 })).code, 200)
        assert.deepStrictEqual(yield* reportedBy(each.device), { Anything: { a: [1] } })
      }
    }))

  it.effect("a change of the model counts for the next message", () =>
    Effect.gen(function*() {
      const models = yield* ThingModels
      const { device, product: { productKey } } = yield* connectModelled()
      yield* models.addElement(defaultProjectId, productKey, "property", {
        id: "Humidity",
        name: "Humidity",
        accessMode: "r",
        dataType: { type: "int", min: 0, max: 100 }
      })
      assert.deepStrictEqual((yield* device.postProperties({ Humidity: 55 })).data, {})
      yield* models.removeElement(defaultProjectId, productKey, "property", "Humidity")
      assert.property((yield* device.postProperties({ Humidity: 55 })).data, "Humidity")
      yield* models.clear(defaultProjectId, productKey)
      assert.deepStrictEqual((yield* device.postProperties({ Humidity: "any" })).data, {})
    }))

  it.effect("events come bare or wrapped, with their time, and are kept in their order", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      yield* TestClock.setTime(5000)
      for (
        const params of [
          { ErrorCode: 1 },
          { value: { ErrorCode: 2, Detail: "hot" }, time: 4000 },
          { value: { ErrorCode: 0 } }
        ]
      ) assert.strictEqual((yield* device.send("thing.event.Error.post", params)).code, 200)
      const expected = [
        { eventId: "Error", time: 4000, value: { ErrorCode: 2, Detail: "hot" } },
        { eventId: "Error", time: 5000, value: { ErrorCode: 1 } },
        { eventId: "Error", time: 5000, value: { ErrorCode: 0 } }
      ]
      assert.deepStrictEqual(yield* eventsOf(device.device), expected)
      assert.deepStrictEqual(yield* eventsOf(device.device, "Error"), expected)
      assert.deepStrictEqual(yield* eventsOf(device.device, "other"), [])
    }))

  it.effect("an event that does not fit the model is refused with the protocol's code", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.event.Error.post", [
          { ErrorCode: 9 },
          { Detail: "x".repeat(256) },
          { More: 1 },
          "text",
          null
        ]),
        [6309, 6310, 6304, 460, 460]
      )
      assert.strictEqual((yield* device.send("thing.event.Missing.post", {})).code, 6300)
      assert.deepStrictEqual(yield* eventsOf(device.device), [])
    }))

  it.effect("the history holds every value that was kept, also those that are older than the stored one", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      yield* TestClock.setTime(10_000)
      yield* device.postProperties({ t: { value: 2, time: 2000 } })
      yield* device.postProperties({ t: { value: 1, time: 1000 } })
      yield* device.postProperties({ t: 3 })
      assert.deepStrictEqual(yield* samplesOf(device.device, "t"), [[1000, 1], [2000, 2], [10_000, 3]])
      assert.deepStrictEqual(yield* reportedBy(device.device), { t: 3 })
    }))

  it.effect("a batch brings several values of each property and several occurrences of each event", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      const reply = yield* device.send("thing.event.property.batch.post", {
        properties: {
          WindSpeed: [{ value: 1, time: 1000 }, { value: 9, time: 1500 }, { value: 3, time: 2000 }],
          PowerSwitch: [{ value: 1, time: 1000 }]
        },
        events: {
          Error: [{ value: { ErrorCode: 1 }, time: 1000 }, { value: { ErrorCode: 2 }, time: 2000 }],
          No: [{ value: {} }]
        }
      })
      assert.deepStrictEqual([reply.code, reply.data], [200, {
        WindSpeed: "expected one of 0, 1, 2, 3",
        No: "tsl parse: method not exist -> thing.event.No.post"
      }])
      assert.deepStrictEqual(yield* samplesOf(device.device, "WindSpeed"), [[1000, 1], [2000, 3]])
      assert.deepStrictEqual((yield* eventsOf(device.device)).map(({ time }) => time), [1000, 2000])
      assert.deepStrictEqual(yield* reportedBy(device.device), { WindSpeed: 3, PowerSwitch: 1 })
    }))

  it.effect("a late report of the device itself goes into the history, one of another device is refused", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const { deviceName, productKey } = device.device
      yield* TestClock.setTime(9000)
      yield* device.postProperties({ t: 9 })
      const method = "thing.event.property.history.post"
      const late = (identity: object) => [{
        identity,
        properties: [{ t: { value: 1, time: 1000 } }, { t: { value: 2, time: 2000 } }],
        events: [{ Alarm: { value: { a: 1 }, time: 1500 } }]
      }]
      assert.strictEqual((yield* device.send(method, late({ productKey, deviceName }))).code, 200)
      assert.deepStrictEqual(yield* samplesOf(device.device, "t"), [[1000, 1], [2000, 2], [9000, 9]])
      assert.deepStrictEqual(yield* reportedBy(device.device), { t: 9 })
      assert.strictEqual((yield* eventsOf(device.device, "Alarm")).length, 1)
      assert.deepStrictEqual(
        yield* codesOf(device, method, [late({ productKey, deviceName: "other" }), {}, [1], [{ properties: [1] }]]),
        [6401, 6301, 460, 460]
      )
      assert.strictEqual((yield* samplesOf(device.device, "t")).length, 3)
    }))

  it.effect("a pack brings the gateway's own values; its sub-devices must be known", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const method = "thing.event.property.pack.post"
      const own = { properties: { a: { value: 1, time: 5 } }, events: { e: { value: { x: 1 }, time: 6 } } }
      assert.strictEqual((yield* device.send(method, own)).code, 200)
      assert.deepStrictEqual(yield* samplesOf(device.device, "a"), [[5, 1]])
      const foreign = { ...own, subDevices: [{ identity: { productKey: "x", deviceName: "y" }, properties: {} }] }
      assert.strictEqual((yield* device.send(method, foreign)).code, 6401)
      assert.strictEqual((yield* samplesOf(device.device, "a")).length, 1)
    }))

  it.effect("what cannot be stored is refused, whatever it hides in", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const deep = (levels: number): Json => levels === 0 ? 1 : [deep(levels - 1)]
      const { data } = yield* handOver(device.device, "thing.event.property.post", {
        infinite: Number.POSITIVE_INFINITY,
        inside: [{ a: Number.NaN }],
        deep: deep(9),
        "NUL\0": 1,
        "": 1,
        good: deep(8)
      })
      assert.deepStrictEqual(Object.keys(data as object), ["infinite", "inside", "deep", "NUL\0", ""])
      assert.deepStrictEqual(Object.keys(yield* reportedBy(device.device)), ["good"])
      const notStored = yield* handOver(device.device, "thing.event.e.post", { a: Number.NaN })
      assert.strictEqual(notStored.code, 460)
      const nested = yield* codesOf(device, "thing.event.e.post", [{ a: deep(33) }, { a: deep(20) }])
      assert.deepStrictEqual(nested, [460, 200])
      const infinite = { good: { value: Number.POSITIVE_INFINITY, time: 5 } }
      const late = yield* handOver(device.device, "thing.event.property.post", infinite)
      assert.deepStrictEqual(Object.keys(late.data as object), ["good"])
      const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`p${i}`, i]))
      assert.strictEqual((yield* device.postProperties(many)).code, 6106)
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.event.property.batch.post", [{ properties: many }, 1, {
          properties: 1
        }]),
        [6106, 460, 460]
      )
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.event.property.post", [undefined, null, [], "x", JSON.parse(`{"__proto__":1}`)]),
        [460, 460, 460, 460, 200]
      )
      assert.strictEqual((yield* device.send("thing.no.such", {})).code, 6203)
    }))

  it.effect("a device reads the values that are desired of it and takes them off by their version", () =>
    Effect.gen(function*() {
      const shadows = yield* Shadows
      const device = yield* connectPlain
      const { deviceId } = device.device
      yield* shadows.desire(defaultProjectId, deviceId, { power: "on", speed: 1 })
      yield* shadows.desire(defaultProjectId, deviceId, { power: "off" })
      const get = device.send("thing.property.desired.get", ["power", "speed", "missing"])
      assert.deepStrictEqual((yield* get).data, {
        power: { value: "off", version: 2 },
        speed: { value: 1, version: 1 }
      })
      yield* device.send("thing.property.desired.delete", { power: { version: 1 }, speed: {} })
      assert.deepStrictEqual((yield* get).data, { power: { value: "off", version: 2 } })
      const text = yield* device.send("thing.property.desired.delete", { power: { version: "1" } })
      assert.strictEqual(text.code, 460)
      assert.property((yield* get).data, "power")
      yield* device.send("thing.property.desired.delete", { power: { version: 2 } })
      assert.deepStrictEqual((yield* get).data, {})
      const many = Array.from({ length: 201 }, (_, i) => `p${i}`)
      assert.deepStrictEqual(yield* codesOf(device, "thing.property.desired.get", [many, {}, [1]]), [6104, 460, 460])
    }))

  it.effect("a device sets, reads and removes its tags", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const tag = (attrKey: string, attrValue: unknown) => ({ attrKey, attrValue })
      yield* device.send("thing.deviceinfo.update", [tag("Site", "Hall 1"), tag("_row", "3")])
      yield* device.send("thing.deviceinfo.update", [tag("_row", "4")])
      const get = Effect.map(device.send("thing.deviceinfo.get", {}), ({ data }) => data)
      assert.deepStrictEqual(yield* get, [tag("Site", "Hall 1"), tag("_row", "4")] as Json)
      const some = (attrKeys: Json) => Effect.map(device.send("thing.deviceinfo.get", { attrKeys }), ({ data }) => data)
      assert.deepStrictEqual(yield* some(["_row", "missing"]), [tag("_row", "4")] as Json)
      assert.deepStrictEqual(yield* some([]), yield* get)
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.deviceinfo.get", [{ attrKeys: "Site" }, { attrKeys: [1] }, { attrKeys: null }]),
        [460, 460, 200]
      )
      yield* device.send("thing.deviceinfo.delete", [{ attrKey: "Site" }, { attrKey: "missing" }])
      assert.deepStrictEqual(yield* get, [tag("_row", "4")] as Json)
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.deviceinfo.update", [
          [],
          {},
          [tag("1st", "x")],
          [tag("a", 1)],
          [tag("a", "x".repeat(129))],
          Array.from({ length: 51 }, (_, i) => tag(`k${i}`, "x"))
        ]),
        [460, 460, 460, 460, 460, 460]
      )
      assert.deepStrictEqual(yield* get, [tag("_row", "4")] as Json)
    }))

  it.effect("a device reads its thing model and its log switch, writes logs, and has no remote configuration", () =>
    Effect.gen(function*() {
      const { device } = yield* connectModelled()
      const { data } = yield* device.send("thing.dsltemplate.get", {})
      assert.deepInclude(data, { schema: JSON.parse(tsl).schema })
      assert.deepStrictEqual((yield* device.send("thing.config.log.get", { getType: "content" })).data, {
        getType: "content",
        content: { mode: 0 }
      })
      assert.strictEqual((yield* device.send("thing.config.get", {})).code, 6713)
      const entry = { utcTime: "2026-11-21T03:32:54.000+0000", logLevel: "WARN", module: "APP", logContent: "hello" }
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.log.post", [[entry], [], Array.from({ length: 41 }, () => entry), {}]),
        [200, 460, 460, 460]
      )
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.diag.post", [{ p: { wifi: { rssi: -75 } }, model: "x" }, {}]),
        [
          200,
          460
        ]
      )
      assert.strictEqual((yield* device.send("thing.diag.post", [])).message, "params: expected an object with p")
      assert.strictEqual((yield* device.send("thing.mesh.add", [])).message, "params: Expected object")
      assert.strictEqual(
        (yield* device.send("thing.list.found", [5])).message,
        "params: expected productKey and deviceName of each sub-device"
      )
      assert.strictEqual((yield* device.send("thing.model.up_raw", "00ff")).code, 200)
      assert.deepStrictEqual((yield* eventsOf(device.device)).map(({ eventId }) => eventId), ["log", "diag", "raw"])
    }))

  it.effect("a device works on its shadow by versions", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const send = (message: object) => Effect.map(device.send("thing.shadow", message), ({ code }) => code)
      assert.strictEqual(
        yield* send({ method: "update", state: { reported: { color: "red", size: 1 } }, version: 1 }),
        200
      )
      assert.strictEqual(yield* send({ method: "update", state: { reported: { color: "blue" } }, version: 1 }), 409)
      assert.strictEqual(
        yield* send({ method: "update", state: { reported: { color: "green" } }, version: 1_763_683_200_000 }),
        200
      )
      const { reported, version } = yield* shadowOf(device.device)
      assert.deepStrictEqual([reported["color"]?.value, version], ["green", 1_763_683_200_000])
      const { data } = yield* device.send("thing.shadow", { method: "get" })
      assert.deepInclude(data, { version, state: { reported: { color: "green", size: 1 }, desired: {} } })

      yield* (yield* Shadows).desire(defaultProjectId, device.device.deviceId, { color: "black", size: 2 })
      assert.strictEqual(
        yield* send({ method: "update", state: { desired: { size: "null" } }, version: version + 2 }),
        200
      )
      assert.deepStrictEqual(Object.keys((yield* shadowOf(device.device)).desired), ["color"])
      assert.strictEqual(yield* send({ method: "update", state: { desired: "null" }, version: version + 3 }), 200)
      assert.strictEqual(
        yield* send({ method: "delete", state: { reported: { color: "null" } }, version: version + 4 }),
        200
      )
      assert.deepStrictEqual(yield* reportedBy(device.device), { size: 1 })
      assert.strictEqual(yield* send({ method: "update", version: -1 }), 200)
      assert.deepInclude(yield* shadowOf(device.device), { reported: {}, desired: {}, version: 0 })
    }))

  it.effect("what is wrong with a shadow message is told by its code, and changes nothing", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      const many = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`p${i}`, i]))
      assert.deepStrictEqual(
        yield* codesOf(device, "thing.shadow", [
          1,
          { state: {}, version: 1 },
          { method: "update", version: 1 },
          { method: "update", state: { reported: { a: 1 } } },
          { method: "update", state: { reported: { a: 1 } }, version: 1.5 },
          { method: "update", state: { reported: { a: 1 } }, version: 2 ** 53 - 1 },
          { method: "update", state: {}, version: 1 },
          { method: "update", state: { reported: {} }, version: 1 },
          { method: "drop", version: 1 },
          {},
          { method: "update", state: { reported: many }, version: 1 }
        ]),
        [400, 401, 402, 403, 403, 403, 404, 405, 406, 407, 408]
      )
      assert.strictEqual((yield* shadowOf(device.device)).version, 0)
    }))

  it.effect("a shadow message that is refused takes nothing away, whatever is stored beside it", () =>
    Effect.gen(function*() {
      const device = yield* connectPlain
      yield* (yield* Shadows).desire(defaultProjectId, device.device.deviceId, { wanted: 1 })
      const full = Object.fromEntries(Array.from({ length: 128 }, (_, i) => [`p${i}`, i]))
      yield* device.send("thing.shadow", { method: "update", state: { reported: full }, version: 10 })
      const state = { desired: null, reported: { p0: null, more: 1, evenMore: 2 } }
      const replies = yield* Effect.all([
        device.send("thing.shadow", { method: "update", state, version: 11 }),
        device.send("thing.shadow", { method: "update", state: { reported: { p1: 7 } }, version: 12 })
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(replies.map(({ code }) => code), [408, 200])
      assert.deepStrictEqual(Object.keys((yield* shadowOf(device.device)).desired), ["wanted"])
      assert.deepStrictEqual(yield* reportedBy(device.device), { ...full, p1: 7 })
      // What it removes makes room for what it reports.
      const swapped = { reported: { p0: null, more: 1 } }
      const swap = yield* device.send("thing.shadow", { method: "update", state: swapped, version: 13 })
      assert.strictEqual(swap.code, 200)
    }))

  it.effect("listeners hear of what was kept, after it was stored", () =>
    Effect.gen(function*() {
      const feed = yield* Feed
      const { device } = yield* connectModelled()
      const heard = yield* feed.stream({ projectId: undefined, after: yield* feed.end }).pipe(
        Stream.map(({ event }) => event),
        Stream.filter((event) => event._tag === "PropertiesReported" || event._tag === "EventReported"),
        Stream.take(2),
        Stream.runCollect,
        Effect.forkChild
      )
      yield* device.postProperties({ WindSpeed: 9 })
      yield* device.postProperties({ WindSpeed: 1, Unknown: 1 })
      yield* device.send("thing.event.Error.post", { ErrorCode: 1 })
      const [report, event] = yield* Fiber.join(heard)
      assert.deepStrictEqual(report?._tag === "PropertiesReported" ? Object.keys(report.properties) : [], ["WindSpeed"])
      assert.deepInclude(event, { eventId: "Error", value: { ErrorCode: 1 } })
    }))
})
