import { Commands, defaultProjectId, type Device, DeviceSessions, Shadows } from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Queue } from "effect"
import { fork, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { program } from "../../../vitest.installed.ts"
import { storages } from "../../../vitest.storages.ts"

/** What the programs beside this file report, and what they can be asked for. */
const model = {
  ...Fixtures.thingModel,
  events: [{
    id: "Error",
    name: "Error",
    eventType: "error",
    outputData: [{ id: "ErrorCode", name: "Code", dataType: { type: "int" } }]
  }],
  services: ["Reset", "SetLight"].map((id) => ({
    id,
    name: id,
    callType: "async",
    inputData: [{ id: "strength", name: "Strength", dataType: { type: "int" } }]
  }))
}

const createDevice = Effect.flatMap(Fixtures.createProductWithModel(model), Fixtures.createDevice)

type Message = Readonly<Record<string, unknown>>

interface Told {
  readonly event: "connect" | "sub-connect" | "props" | "service" | "shadow" | "config" | "reply" | "error"
  readonly data: Message
}

/** Starts a device program; it ends with the scope. It is connected. */
const start = Effect.fnUntraced(function*(
  { deviceName, deviceSecret, productKey }: Device,
  program: "sdk-device.mjs" | "sdk-gateway.mjs" = "sdk-device.mjs"
) {
  const { authorityFile, tls } = yield* MqttTestServer
  const told = yield* Queue.unbounded<Told>()
  const others: Array<Told> = []
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      fork(fileURLToPath(new URL(program, import.meta.url)), {
        execArgv: [],
        env: { NODE_EXTRA_CA_CERTS: authorityFile }
      })
    ),
    (child) => Effect.sync(() => child.kill())
  )
  child.on("message", (message) => Queue.offerUnsafe(told, message as Told))
  child.once("exit", (code) => Queue.offerUnsafe(told, { event: "error", data: { exit: code } }))
  child.send({ productKey, deviceName, deviceSecret, brokerUrl: tls.url })

  /** What the program tells of an event next, also when it did so earlier. */
  const heard = Effect.fnUntraced(function*(event: Told["event"]) {
    const earlier = others.findIndex((each) => each.event === event)
    if (earlier >= 0) return others.splice(earlier, 1)[0]!.data
    while (true) {
      const next = yield* Queue.take(told)
      if (next.event === event) return next.data
      if (next.event === "error") return assert.fail(`The device program says ${JSON.stringify(next.data)}`)
      others.push(next)
    }
  })
  const call = (method: string, ...args: ReadonlyArray<unknown>) =>
    Effect.sync(() => void child.send({ call: method, args }))
  yield* heard("connect")
  return {
    heard,
    call,
    /** Calls a function of the SDK that has a callback; answers what that is given. */
    ask: (method: string, ...args: ReadonlyArray<unknown>) => Effect.andThen(call(method, ...args), heard("reply"))
  }
})

/** Debian's package of Mosquitto's clients has both. */
const clients = program("mosquitto_pub")

/** Runs one of Mosquitto's clients to its end; answers what it printed. */
const mosquitto = Effect.fnUntraced(function*(
  command: "mosquitto_pub" | "mosquitto_sub",
  device: Device,
  ...args: ReadonlyArray<string>
) {
  const { authorityFile, tls } = yield* MqttTestServer
  const port = String(RawMqttSocket.portOf(tls))
  const { clientId, password, username } = MqttDevice.credentials(device)
  const connection = ["-h", "localhost", "-p", port, "--cafile", authorityFile]
  const identity = ["-i", clientId, "-u", username, "-P", password, "-q", "1"]
  return yield* Effect.callback<string>((resume) => {
    const child = spawn(command, [...connection, ...identity, ...args], { stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    child.stdout.on("data", (chunk) => output += chunk)
    child.stderr.on("data", (chunk) => output += chunk)
    child.once(
      "close",
      (code) =>
        resume(code === 0 ? Effect.succeed(output) : Effect.die(new Error(`${command} ended with ${code}: ${output}`)))
    )
    return Effect.sync(() => child.kill())
  })
})

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`public device software on ${name}`, (it) => {
    it.effect("a device on the SDK connects over TLS, is seen at once, and says goodbye", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const running = yield* start(device)
        assert.strictEqual((yield* CloudState.device(device)).status, "online")
        yield* running.call("end")
        yield* CloudState.untilStatus(device, "offline")
      }))

    it.effect("the SDK's callbacks get the replies to properties, events, tags and configuration", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { ask } = yield* start(device)
        assert.deepInclude(yield* ask("postProps", { power: 1, level: 3 }), {
          code: 200,
          message: "success",
          method: "thing.event.property.post"
        })
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1, level: 3 })
        assert.deepInclude(yield* ask("postProps", { level: 11 }), { code: 200 })
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1, level: 3 })

        assert.deepInclude(yield* ask("postEvent", "Error", { ErrorCode: 7 }), {
          code: 200,
          method: "thing.event.Error.post"
        })
        const events = yield* CloudState.events(device, "Error")
        assert.deepStrictEqual(events.map(({ value }) => value), [{ ErrorCode: 7 }])
        assert.deepInclude(yield* ask("postEvent", "Error", { ErrorCode: "x" }), { code: 6306 })

        const tags = [{ attrKey: "site", attrValue: "roof" }, { attrKey: "floor", attrValue: "9" }]
        assert.deepInclude(yield* ask("postTags", tags), { code: 200, method: "thing.deviceinfo.update" })
        assert.deepStrictEqual((yield* CloudState.device(device)).tags, { site: "roof", floor: "9" })
        assert.deepInclude(yield* ask("deleteTags", ["floor"]), { code: 200, method: "thing.deviceinfo.delete" })
        assert.deepStrictEqual((yield* CloudState.device(device)).tags, { site: "roof" })

        assert.deepInclude(yield* ask("getConfig"), { code: 6713, method: "thing.config.get" })
      }))

    it.effect("a property is set on the SDK's device, which reports its new value", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { heard } = yield* start(device)
        const command = yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { level: 5 })
        assert.deepInclude(yield* heard("props"), {
          id: String(command.messageId),
          method: "thing.service.property.set",
          params: { level: 5 }
        })
        assert.deepInclude(yield* heard("reply"), { code: 200 })
        assert.deepStrictEqual(yield* CloudState.reported(device), { level: 5 })
        yield* CloudState.untilState(command, "acked")
      }))

    it.effect("services are called on the SDK's device, also one it did not subscribe to, and end with its answer", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const device = yield* createDevice
        const { heard } = yield* start(device)
        const calls = [["Reset", "succeeded", 200, { restarts: 1 }], ["SetLight", "failed", 100_001, {
          reason: "broken"
        }]] as const
        for (const [service, state, code, data] of calls) {
          const command = yield* commands.callService(defaultProjectId, device.deviceId, service, { strength: 1 })
          assert.deepInclude(yield* heard("service"), {
            id: String(command.messageId),
            method: `thing.service.${service}`,
            params: { strength: 1 }
          })
          assert.deepInclude(yield* CloudState.untilState(command, state), { code, data })
        }
      }))

    it.effect("the SDK's device reads, changes and empties its shadow, and is told what is desired", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { call, heard } = yield* start(device)
        const told = Effect.map(heard("shadow"), ({ payload }) => payload as Message)
        yield* call("postShadow", { level: 3, power: 1 })
        const { version } = yield* told
        assert.deepStrictEqual(yield* CloudState.reported(device), { level: 3, power: 1 })
        yield* call("getShadow")
        assert.deepInclude(yield* told, {
          status: "success",
          state: { reported: { level: 3, power: 1 }, desired: {} }
        })
        // The SDK takes the time as the version, which has to grow.
        yield* eventually(Clock.currentTimeMillis, { until: (now) => now > Number(version) })
        yield* call("deleteShadow", ["power"])
        assert.deepInclude(yield* told, { status: "success" })
        assert.deepStrictEqual(yield* CloudState.reported(device), { level: 3 })
        yield* (yield* Shadows).desire(defaultProjectId, device.deviceId, { level: 9 })
        const control = yield* heard("shadow")
        assert.deepInclude(control, { method: "control" })
        assert.deepInclude(control["payload"], { state: { reported: { level: 3 }, desired: { level: 9 } } })
      }))

    it.effect("the SDK's device comes back by itself, and gets what was called meanwhile", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { heard } = yield* start(device)
        const session = (yield* DeviceSessions).session(device.deviceId)
        yield* session!.connection.close("shutdown")
        yield* CloudState.untilStatus(device, "offline")
        const command = yield* (yield* Commands).callService(defaultProjectId, device.deviceId, "Reset", {
          strength: 2
        })
        yield* heard("connect")
        assert.deepInclude(yield* heard("service"), { id: String(command.messageId), params: { strength: 2 } })
        yield* CloudState.untilState(command, "succeeded")
      }))

    it.effect("a gateway on the SDK adds, lists, registers and logs in a sub-device, and speaks for it", () =>
      Effect.gen(function*() {
        const gateway = yield* Fixtures.createDevice(
          yield* Fixtures.createProduct({ nodeType: "gateway", validateType: "none" })
        )
        const sub = yield* Fixtures.createDevice(
          yield* Fixtures.createProduct({ nodeType: "gateway-sub", validateType: "none", dynamicRegister: true })
        )
        const name = { productKey: sub.productKey, deviceName: sub.deviceName }
        const triple = { ...name, deviceSecret: sub.deviceSecret }
        const { ask, call, heard } = yield* start(gateway, "sdk-gateway.mjs")
        assert.deepInclude(yield* ask("regiestSubDevice", [name]), {
          code: 200,
          data: [{ iotId: sub.deviceId, ...triple }]
        })
        assert.deepInclude(yield* ask("addTopo", [triple]), { code: 200, data: [name] })
        assert.deepInclude(yield* ask("getTopo"), { code: 200, data: [name] })
        yield* call("login", triple)
        assert.deepInclude(yield* heard("reply"), { code: 200, data: name })
        yield* heard("sub-connect")
        assert.strictEqual((yield* CloudState.device(sub)).status, "online")
        assert.deepInclude(yield* ask("sub.postProps", { level: 4 }), { code: 200 })
        assert.deepStrictEqual(yield* CloudState.reported(sub), { level: 4 })
        yield* (yield* Commands).setProperties(defaultProjectId, sub.deviceId, { level: 6 }, {})
        assert.deepInclude(yield* heard("props"), { params: { level: 6 } })
        yield* eventually(CloudState.reported(sub), { until: ({ level }) => level === 6 })
        assert.deepInclude(yield* ask("logout", name), { code: 200, data: name })
        assert.strictEqual((yield* CloudState.device(sub)).status, "offline")
        assert.deepInclude(yield* ask("removeTopo", [name]), { code: 200, data: [name] })
        assert.deepInclude(yield* ask("getTopo"), { code: 200, data: [] })
      }))

    it.effect.skipIf(!clients.isInstalled)(
      clients.named("mosquitto_pub reports a property"),
      () =>
        Effect.gen(function*() {
          const device = yield* createDevice
          const topic = `/sys/${device.productKey}/${device.deviceName}/thing/event/property/post`
          yield* mosquitto("mosquitto_pub", device, "-t", topic, "-m", `{"id":"1","params":{"level":4}}`)
          assert.deepStrictEqual(yield* CloudState.reported(device), { level: 4 })
        })
    )

    it.effect.skipIf(!clients.isInstalled)(clients.named("mosquitto_sub gets a command"), () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const topic = `/sys/${device.productKey}/${device.deviceName}/thing/service/Reset`
        const command = yield* (yield* Commands).callService(defaultProjectId, device.deviceId, "Reset", {
          strength: 1
        })
        const output = yield* mosquitto("mosquitto_sub", device, "-t", topic, "-C", "1")
        assert.deepInclude(JSON.parse(output), { id: String(command.messageId), params: { strength: 1 } })
      }))
  })
}
