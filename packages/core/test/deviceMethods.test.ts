import { defaultProjectId, DeviceMethod, DeviceMethods, DeviceReply, History, Shadows } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result, Schema } from "effect"

/** What the handlers of the test need. */
class Prefix extends Context.Service<Prefix, string>()("test/Prefix") {}

const circular: { self?: unknown } = {}
circular.self = circular

/** What a program without types may reply. */
const oddReplies: Record<string, unknown> = {
  "undefined": undefined,
  "null": null,
  "a text": "done",
  "no code": { message: "success", data: {} },
  "another code": { code: Number.NaN, message: "success", data: {} },
  "another message": { code: 200, message: 1, data: {} },
  "a bigint": { code: 200, message: "success", data: { energy: [1n] } },
  "data inside itself": { code: 200, message: "success", data: circular },
  "a text as bytes": { code: 200, message: "success", data: {}, encodedData: "{}" }
}
const oddReply = (name: string) =>
  (Object.hasOwn(oddReplies, name) ? oddReplies[name] : DeviceReply.success({})) as DeviceReply.DeviceReply

const methods = DeviceMethods.layer([
  DeviceMethod.answer({
    name: "thing.acme.oddAnswer",
    lane: "reports",
    reply: ({ params }) => oddReply(params as string)
  }),
  DeviceMethod.update({
    name: "thing.acme.oddUpdate",
    decode: Schema.String,
    update: (name, state, { receivedAt }) => {
      state.report([["half", { value: 1, time: receivedAt }]], receivedAt)
      return oddReply(name)
    }
  }),
  DeviceMethod.request({
    name: "thing.acme.oddRequest",
    decode: Schema.String,
    handle: (name) => Effect.succeed(oddReply(name))
  }),
  DeviceMethod.requests({
    name: "thing.acme.oddRequests",
    decode: Schema.String,
    handle: (requests) => Effect.succeed(requests.map(({ request }) => oddReply(request)))
  }),
  DeviceMethod.request({
    name: "thing.acme.selftest",
    decode: Schema.Struct({ level: Schema.Int }),
    handle: ({ level }, { device }) =>
      Prefix.use((prefix) =>
        Effect.succeed(DeviceReply.success({ said: `${prefix} ${level}`, name: device.deviceName }))
      )
  }),
  DeviceMethod.update({
    name: "thing.acme.*.set",
    decode: Schema.Struct({ value: Schema.Finite }),
    update: ({ value }, state, { method, receivedAt }) =>
      DeviceReply.success(state.report([[method.split(".")[2]!, { value, time: receivedAt }]], receivedAt))
  }),
  DeviceMethod.update({
    name: "thing.acme.break",
    decode: Schema.Unknown,
    update: (_, state, { receivedAt }) => {
      state.report([["half", { value: 1, time: receivedAt }]], receivedAt)
      throw new Error("a bug of the application")
    }
  }),
  DeviceMethod.request({
    name: "thing.acme.breakLater",
    decode: Schema.Unknown,
    handle: () => Effect.die(new Error("a bug of the application"))
  }),
  DeviceMethod.request({
    name: "thing.acme.fragile",
    decode: Schema.Boolean,
    handle: (breaks) => {
      if (breaks) throw new Error("a bug of the application")
      return Effect.succeed(DeviceReply.success({}))
    }
  }),
  DeviceMethod.requests({
    name: "thing.acme.together",
    decode: Schema.Boolean,
    handle: (requests) => {
      if (requests.some(({ request }) => request)) throw new Error("a bug of the application")
      return Effect.succeed(requests.map(() => DeviceReply.success({ together: requests.length })))
    }
  }),
  DeviceMethod.request({
    name: "thing.acme.async",
    decode: Schema.Boolean,
    // TypeScript forbids it; JavaScript does not.
    handle: (breaks) =>
      breaks ? (Promise.resolve(DeviceReply.success({})) as never) : Effect.succeed(DeviceReply.success({}))
  }),
  DeviceMethod.requests({
    name: "thing.acme.forgetful",
    decode: Schema.Boolean,
    handle: (requests) =>
      requests.some(({ request }) => request)
        ? (undefined as never)
        : Effect.succeed(requests.map(() => DeviceReply.success({})))
  }),
  DeviceMethod.request({
    name: "thing.acme.joining",
    decode: Schema.Boolean,
    handle: (breaks) =>
      breaks
        ? Effect.flatMap(Effect.forkChild(Effect.interrupt), Fiber.join)
        : Effect.succeed(DeviceReply.success({}))
  }),
  DeviceMethod.requests({
    name: "thing.acme.joiningTogether",
    decode: Schema.Boolean,
    handle: (requests) =>
      requests.some(({ request }) => request)
        ? Effect.flatMap(Effect.forkChild(Effect.interrupt), Fiber.join)
        : Effect.succeed(requests.map(() => DeviceReply.success({})))
  }),
  DeviceMethod.updates({
    name: "thing.acme.names",
    names: () => {
      throw new Error("a bug of the application")
    },
    updates: () => Result.succeed([])
  })
])

const cloud = methods.pipe(
  Layer.provideMerge(TestCloud.layer),
  Layer.provide(Layer.succeed(Prefix, "level"))
)

const connect = Effect.gen(function*() {
  const cloud = yield* TestCloud
  return yield* cloud.connect(yield* cloud.createDevice())
})

const reportedOf = (deviceId: Parameters<Shadows["Service"]["get"]>[1]) =>
  Effect.map(
    Shadows.use((shadows) => shadows.get(defaultProjectId, deviceId)),
    ({ shadow }) => Object.keys(shadow.reported)
  )

layer(cloud)("device methods of an application", (it) => {
  it.effect("a request is decoded, handled and replied to", () =>
    Effect.gen(function*() {
      const device = yield* connect
      const reply = yield* device.send("thing.acme.selftest", { level: 3 })
      assert.deepStrictEqual(reply, DeviceReply.success({ said: "level 3", name: device.device.deviceName }))
      const refused = yield* device.send("thing.acme.selftest", { level: "three" })
      assert.strictEqual(refused.code, 460)
      assert.match(refused.message, /^level: /)
    }))

  it.effect("an update takes part in the transaction of the reports", () =>
    Effect.gen(function*() {
      const device = yield* connect
      const reply = yield* device.send("thing.acme.volume.set", { value: 7 })
      assert.strictEqual(reply.code, 200)
      assert.deepStrictEqual(yield* reportedOf(device.device.deviceId), ["volume"])
      const samples = yield* History.use((history) =>
        history.properties(defaultProjectId, device.device.deviceId, "volume", {
          start: 0,
          end: 8.64e15,
          limit: 10,
          order: "asc"
        })
      )
      assert.deepStrictEqual(samples.map(({ value }) => value), [7])
    }))

  it.effect("a method that throws is refused alone, and leaves nothing half done", () =>
    Effect.gen(function*() {
      const device = yield* connect
      const other = yield* connect
      const replies = yield* Effect.all([
        device.postProperties({ before: 1 }),
        device.send("thing.acme.break", {}),
        device.send("thing.acme.breakLater", {}),
        device.postProperties({ after: 1 }),
        other.postProperties({ on: 1 })
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(replies.map(({ code }) => code), [200, 500, 500, 200, 200])
      assert.deepStrictEqual(yield* reportedOf(device.device.deviceId), ["before", "after"])
      assert.deepStrictEqual(yield* reportedOf(other.device.deviceId), ["on"])
    }))

  for (
    const [method, fault] of [
      ["thing.acme.fragile", "throws"],
      ["thing.acme.together", "throws"],
      ["thing.acme.async", "returns no Effect"],
      ["thing.acme.forgetful", "returns no Effect"],
      ["thing.acme.joining", "joins a fiber that is interrupted"],
      ["thing.acme.joiningTogether", "joins a fiber that is interrupted"]
    ] as const
  ) {
    it.effect(`a request of ${method} that ${fault} is refused alone`, () =>
      Effect.gen(function*() {
        const device = yield* connect
        const replies = yield* Effect.all([
          device.send(method, false),
          device.send(method, true),
          device.send(method, false),
          device.postProperties({ on: 1 })
        ], { concurrency: "unbounded" })
        assert.deepStrictEqual(replies.map(({ code }) => code), [200, 500, 200, 200])
        // Those who come later find a server that still works.
        assert.strictEqual((yield* device.send(method, false)).code, 200)
      }))
  }

  for (const [name, reply] of Object.entries(oddReplies)) {
    it.effect(`a message whose method replies ${name} is refused alone, and leaves nothing half done`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(oddReply(name), reply)
        const device = yield* connect
        const other = yield* connect
        const replies = yield* Effect.all([
          device.postProperties({ before: 1 }),
          device.send("thing.acme.oddAnswer", name),
          device.send("thing.acme.oddUpdate", name),
          device.send("thing.acme.oddRequest", "fine"),
          device.send("thing.acme.oddRequest", name),
          device.send("thing.acme.oddRequests", name),
          device.send("thing.acme.oddRequests", "fine"),
          device.postProperties({ after: 1 }),
          other.postProperties({ on: 1 })
        ], { concurrency: "unbounded" })
        assert.deepStrictEqual(replies.map(({ code }) => code), [200, 500, 500, 200, 500, 500, 200, 200, 200])
        assert.deepStrictEqual(yield* reportedOf(device.device.deviceId), ["before", "after"])
        assert.deepStrictEqual(yield* reportedOf(other.device.deviceId), ["on"])
      }))
  }

  it.effect("a method that throws while it names sub-devices affects no other message", () =>
    Effect.gen(function*() {
      const device = yield* connect
      const replies = yield* Effect.all([
        device.postProperties({ before: 1 }),
        device.send("thing.acme.names", {}),
        device.postProperties({ after: 1 })
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual([replies[0].code, replies[2].code], [200, 200])
      assert.deepStrictEqual(yield* reportedOf(device.device.deviceId), ["before", "after"])
    }))

  it.effect("a name that is declared twice at once is refused", () =>
    Effect.gen(function*() {
      const twice = DeviceMethod.answer({ name: "thing.acme.twice", reply: () => DeviceReply.success({}) })
      const registry = yield* DeviceMethods
      const error = yield* Effect.flip(registry.register([twice, twice]))
      assert.strictEqual(error.name, "thing.acme.twice")
      assert.isUndefined(registry.find("thing.acme.twice"))
    }).pipe(Effect.scoped))

  it.effect("a name that is taken is refused", () =>
    Effect.gen(function*() {
      const registry = yield* DeviceMethods
      const error = yield* Effect.flip(registry.register([
        DeviceMethod.answer({ name: "thing.event.property.post", reply: () => DeviceReply.success({}) })
      ]))
      assert.strictEqual(error.name, "thing.event.property.post")
    }).pipe(Effect.scoped))

  it.effect("a method that nobody declares is refused", () =>
    Effect.gen(function*() {
      const device = yield* connect
      assert.strictEqual((yield* device.send("thing.acme.unknown", {})).code, 6203)
    }))
})
