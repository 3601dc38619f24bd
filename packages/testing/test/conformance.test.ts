import { DevelopmentCertificate } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule, type Scope } from "effect"
import { generate, parser } from "mqtt-packet"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer as createHttpServer, request } from "node:http"
import { createServer } from "node:https"
import { type AddressInfo, createServer as createTcpServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { test } from "vitest"
import type { Outcome } from "../src/conformance/Check.ts"
import { checkCloud } from "../src/conformance/CloudChecks.ts"
import { checkDevice } from "../src/conformance/DeviceChecks.ts"
import * as FirmwareServer from "../src/conformance/FirmwareServer.ts"
import * as Wiretap from "../src/conformance/Wiretap.ts"

test("a cloud: everything of the protocol works", async () => {
  await using cloud = await TestCloud.start({ mqtt: true, http: true })
  const seen: Array<Outcome> = []
  const { accessKey, url: httpUrl } = cloud.http!
  await Effect.runPromise(Effect.scoped(checkCloud(
    { url: cloud.mqtt!.tcp.url, httpUrl, accessKey },
    (outcome) => Effect.sync(() => void seen.push(outcome))
  )))
  assert.deepStrictEqual(seen.filter(({ result }) => result !== "works"), [])
  assert.lengthOf(seen, 20)
  const { items } = await cloud.products.list("default", { page: 1, pageSize: 10 })
  assert.deepStrictEqual(items, [])
})

test("a cloud that does not know the device: what fails is said, and the rest is left out", async () => {
  await using cloud = await TestCloud.start({ mqtt: true })
  const device = { productKey: "none", deviceName: "nobody", deviceSecret: "secret" }
  const seen: Array<Outcome> = []
  await Effect.runPromise(Effect.scoped(checkCloud(
    { url: cloud.mqtt!.tcp.url, device },
    (outcome) => Effect.sync(() => void seen.push(outcome))
  )))
  assert.deepStrictEqual(seen.map(({ result }) => result), ["works", "fails", "fails", "fails", "skipped"])
})

test("a cloud that admits everybody, sends where a device has subscribed, and does not know the time", async () => {
  const cloud = createTcpServer((socket) => {
    const filters: Array<string> = []
    const packets = parser()
    packets.on("packet", (packet) => {
      if (packet.cmd === "connect") socket.write(generate({ cmd: "connack", returnCode: 0, sessionPresent: false }))
      if (packet.cmd === "subscribe") {
        filters.push(...packet.subscriptions.map(({ topic }) => topic))
        socket.write(generate({ cmd: "suback", messageId: packet.messageId!, granted: filters.map(() => 1) }))
      }
      if (packet.cmd !== "publish") return
      socket.write(generate({ cmd: "puback", messageId: packet.messageId! }))
      const topic = packet.topic.startsWith("/ext/ntp/")
        ? packet.topic.replace("request", "response")
        : packet.topic.startsWith("/shadow/")
        ? packet.topic.replace("update", "get")
        : `${packet.topic}_reply`
      const { clientToken, id } = JSON.parse(String(packet.payload)[0] === "{" ? String(packet.payload) : "{}")
      if (!filters.some((filter) => filter === topic || topic.startsWith(filter.replace(/#$/, "")))) return
      const payload = JSON.stringify(
        topic.startsWith("/shadow/")
          ? { clientToken, payload: { status: "success", version: 1 } }
          : topic.startsWith("/ext/ntp/")
          ? {}
          : { id, code: 200, data: {} }
      )
      socket.write(generate({ cmd: "publish", topic, payload, qos: 0, dup: false, retain: false }))
    })
    socket.on("data", (bytes) => void packets.parse(bytes))
  }).listen(0, "127.0.0.1")
  await once(cloud, "listening")
  const device = { productKey: "a1B2c3D4e5F", deviceName: "lamp01", deviceSecret: "secret" }
  const seen: Array<Outcome> = []
  try {
    await Effect.runPromise(Effect.scoped(checkCloud(
      { url: `mqtt://127.0.0.1:${(cloud.address() as AddressInfo).port}`, device },
      (outcome) => Effect.sync(() => void seen.push(outcome))
    )))
  } finally {
    cloud.close()
  }
  const fails = seen.filter(({ result }) => result === "fails").map(({ detail, name }) => [name, detail])
  const wrong = new Set(["refuses a wrong signature", "keeps the shadow", "tells the time"])
  assert.deepStrictEqual(fails.filter(([name]) => wrong.has(name!)), [
    ["refuses a wrong signature", "expected a CONNACK with 4, got one with 0"],
    ["keeps the shadow", `reported: expected {"mode":"eco"}, got undefined`],
    ["tells the time", "200: Expected serverRecvTime and serverSendTime as Unix milliseconds"]
  ])
})

test("an API that is none of ours is named by what it says", async () => {
  const answers = ["{\"code\":0}", "{\"code\":0,\"data\":{\"product_info\":{}}}", "null", "{", "cut"]
  const other = createHttpServer((_, response) => {
    const answer = answers.shift()!
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": answer === "cut" ? 10 : answer.length
    })
    response.write(answer, () => answer === "cut" ? response.destroy() : response.end())
  }).listen(0, "127.0.0.1")
  await once(other, "listening")
  const { port } = other.address() as AddressInfo
  const options = { url: "mqtt://127.0.0.1:1", httpUrl: `http://127.0.0.1:${port}`, accessKey: "key" }
  const messages: Array<string> = []
  while (answers.length > 0) {
    const failure = Effect.flip(checkCloud(options, () => Effect.void))
    messages.push((await Effect.runPromise(Effect.scoped(failure))).message)
  }
  other.close()
  assert.deepStrictEqual(messages.slice(0, 2), Array(2).fill("the API has told no product_key"))
  assert.deepStrictEqual(messages.slice(2).map((message) => message.split(": ")[0]), Array(3).fill("POST /products"))
})

test("a cloud that cannot be reached: each check says so", async () => {
  const gone = createServer().listen(0, "127.0.0.1")
  await once(gone, "listening")
  const { port } = gone.address() as AddressInfo
  gone.close()
  const device = { productKey: "none", deviceName: "nobody", deviceSecret: "secret" }
  const seen: Array<Outcome> = []
  await Effect.runPromise(Effect.scoped(checkCloud(
    { url: `mqtt://127.0.0.1:${port}`, device },
    (outcome) => Effect.sync(() => void seen.push(outcome))
  )))
  assert.deepStrictEqual(seen.map(({ result }) => result), ["fails", "fails", "fails", "fails", "skipped"])
  for (const { detail, result } of seen) if (result === "fails") assert.include(detail, "ECONNREFUSED")
})

const program = fileURLToPath(new URL("../.bundle/conform.js", import.meta.url))

const conformWith = (env: NodeJS.ProcessEnv, ...args: ReadonlyArray<string>) => {
  // Newer versions of Node.js warn of what a dependency calls.
  const options = ["--no-deprecation", program, "conform", ...args]
  const child = spawn(process.execPath, options, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } })
  return { child, ended: Promise.all([text(child.stderr), once(child, "exit")]) }
}

const conform = (...args: ReadonlyArray<string>) => conformWith({}, ...args)

test("a cloud whose API is behind TLS: everything of the protocol works", async () => {
  await using cloud = await TestCloud.start({ mqtt: true, http: true })
  const { accessKey, url } = cloud.http!
  const directory = await mkdtemp(join(tmpdir(), "device-cloud-conform-"))
  const { authorityFile, certificate, key } = await Effect.runPromise(DevelopmentCertificate.loadOrMake(directory))
  const proxy = createServer({ cert: certificate, key }, (incoming, outgoing) => {
    const { headers, method = "GET", url: path = "/" } = incoming
    incoming.pipe(request(new URL(path, url), { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode!, response.headers)
      response.pipe(outgoing)
    }))
  })
  try {
    await once(proxy.listen(0, "127.0.0.1"), "listening")
    const address = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const options = ["--url", cloud.mqtt!.tcp.url, "--http-url", address, "--access-key", accessKey]
    const { child, ended } = conformWith({ NODE_EXTRA_CA_CERTS: authorityFile }, ...options)
    const lines = (await text(child.stdout)).trimEnd().split("\n")
    assert.deepStrictEqual(lines.filter((line) => !line.startsWith("✓")), [])
    assert.deepStrictEqual(await ended, ["", [0, null]])
  } finally {
    proxy.close()
    await rm(directory, { recursive: true })
  }
})

test("what was made on the cloud is removed when nobody reads any more what is printed, and at a signal", async () => {
  await using cloud = await TestCloud.start({ mqtt: true, http: true })
  const { accessKey, url } = cloud.http!
  for (
    const leave of [
      ({ stdout }: ReturnType<typeof conform>["child"]) => void stdout.destroy(),
      (child: ReturnType<typeof conform>["child"]) => void child.kill("SIGINT")
    ]
  ) {
    const { child, ended } = conform("--url", cloud.mqtt!.tcp.url, "--http-url", url, "--access-key", accessKey)
    child.stdout.once("data", () => leave(child))
    assert.deepStrictEqual(await ended, ["", [130, null]])
    const { items } = await cloud.products.list("default", { page: 1, pageSize: 10 })
    assert.deepStrictEqual(items, [])
  }
})

test("the program says how it is used when it is asked, on its output", async () => {
  for (const help of ["--help", "-h"]) {
    const { child, ended } = conform(help)
    assert.include(await text(child.stdout), "device-cloud-testing conform --listen")
    assert.deepStrictEqual(await ended, ["", [0, null]])
  }
})

test("arguments that cannot be used are named, and nothing begins", async () => {
  const refused = "POST /products: connect ECONNREFUSED"
  for (
    const [expected, ...args] of [
      ["--nope", "--nope"],
      ["--listen", "--listen"],
      ["--listen must be an address such as mqtt://…, not here", "--listen", "here"],
      ["--cert is missing", "--listen", "mqtts://127.0.0.1:0"],
      ["--wait must be seconds, above 0", "--listen", "mqtt://127.0.0.1:0", "--wait", "long"],
      ["--firmware-version is missing", "--listen", "mqtt://127.0.0.1:0", "--firmware", program],
      ["--ca: ENOENT", "--url", "mqtts://127.0.0.1:1", "--ca", "/nonexistent"],
      [refused, "--url", "mqtt://127.0.0.1:1", "--http-url", "http://127.0.0.1:1", "--access-key", "dck_none"]
    ] as const
  ) {
    const [error, exit] = await conform(...args).ended
    assert.include(error, expected)
    assert.deepStrictEqual(exit, [2, null])
  }
})

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("conformance of a device", (it) => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251)

  /** What the checks say of a device that lives like this whenever it is connected; undefined: it never is. */
  const outcomes = Effect.fnUntraced(function*(
    on: SimulatedDevice.Handlers,
    life?: (
      connected: SimulatedDevice.SimulatedDevice<SimulatedDevice.DeviceTriple>
    ) => Effect.Effect<unknown, unknown, Scope.Scope>,
    server?: FirmwareServer.FirmwareServer
  ) {
    const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
    const broker = (yield* MqttTestServer).tcp.url
    const wiretap = yield* Wiretap.open({ listen: "mqtt://127.0.0.1:0", broker })
    if (life !== undefined) {
      const session = Effect.gen(function*() {
        const connected = yield* SimulatedDevice.connectMqtt({ ...device, url: wiretap.url, on })
        yield* life(connected)
        yield* connected.closed
      })
      yield* Effect.forkScoped(Effect.ignore(Effect.repeat(Effect.scoped(session), Schedule.forever)))
    }
    const seen: Array<Outcome> = []
    const report = (outcome: Outcome) => Effect.sync(() => void seen.push(outcome))
    const firmware = { version: "2.0.0", bytes }
    yield* checkDevice(device, { wiretap, patience: life ? 20 : 0.2, service: "reset", firmware, server }, report)
    return seen
  })

  const does = {
    set: () => Effect.void,
    desired: () => Effect.void,
    // That is an answer, too.
    services: { reset: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "not now" })) }
  }

  it.effect("everything works of a device that does everything", () =>
    Effect.gen(function*() {
      let version = "1.2.0"
      const seen = yield* outcomes(
        { ...does, upgrade: (image) => Effect.sync(() => void ({ version } = image)) },
        (connected) =>
          Effect.all([
            connected.syncTime,
            Effect.suspend(() => connected.inform(version)),
            connected.postProperties({ level: 3 })
          ])
      )
      assert.deepStrictEqual(
        seen.filter(({ result }) => result !== "works").map(({ detail, name }) => `${name}: ${detail}`),
        []
      )
      assert.lengthOf(seen, 12)
    }))

  it.effect("firmware is downloaded over HTTP, too", () =>
    Effect.gen(function*() {
      const server = yield* FirmwareServer.open("http://127.0.0.1:0", bytes)
      let version = "1.2.0"
      const seen = yield* outcomes(
        { ...does, upgrade: (image) => Effect.sync(() => void ({ version } = image)) },
        (connected) => Effect.andThen(connected.postProperties({ level: 3 }), connected.inform(version)),
        server
      )
      const details = Object.fromEntries(seen.map(({ detail, name }) => [name, detail]))
      assert.deepInclude(details, {
        "downloads over HTTP": "100000 bytes, in 1 request",
        "runs the new version": "2.0.0"
      })
      const answered = yield* Effect.promise(() =>
        Promise.all(
          ["bytes=10-19", "bytes=99990-", "bytes=-5", "bytes=100000-"].map(async (range) => {
            const response = await fetch(server.url, { headers: { range } })
            const part = new Uint8Array(await response.arrayBuffer())
            return [response.status, response.headers.get("content-range"), [...part]]
          })
        )
      )
      assert.deepStrictEqual(answered, [
        [206, "bytes 10-19/100000", [...bytes.subarray(10, 20)]],
        [206, "bytes 99990-99999/100000", [...bytes.subarray(99_990)]],
        [206, "bytes 99995-99999/100000", [...bytes.subarray(99_995)]],
        [416, "bytes */100000", []]
      ])
    }))

  it.effect("what a device leaves out is not supported; an upgrade that it begins and does not end has failed", () =>
    Effect.gen(function*() {
      const seen = yield* outcomes(
        {
          ...does,
          desired: (_, device) => Effect.andThen(Effect.ignore(device.clearDesired()), Effect.succeed({})),
          upgrade: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "no room" }))
        },
        (connected) => connected.postProperties({ level: 3 })
      )
      const results = Object.fromEntries(seen.map(({ name, result }) => [name, result]))
      assert.deepInclude(results, {
        "says which firmware it runs": "not supported",
        "reports its progress": "works",
        "runs the new version": "fails",
        "asks for the time": "not supported"
      })
    }))

  it.effect("a device that leaves in place of an answer, and reports the value again, does not answer", () =>
    Effect.gen(function*() {
      const seen = yield* outcomes(
        {
          ...does,
          set: (_, device) => Effect.andThen(device.disconnect, Effect.never),
          upgrade: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "no room" }))
        },
        (connected) => connected.postProperties({ level: 3 })
      )
      const results = Object.fromEntries(seen.map(({ name, result }) => [name, result]))
      assert.deepInclude(results, { "answers a property set": "fails", "answers a service call": "works" })
    }))

  it.effect("a device that reports more often than commands wait for a new connection answers them", () =>
    Effect.gen(function*() {
      const seen = yield* outcomes(
        { ...does, upgrade: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "no room" })) },
        (connected) =>
          connected.postProperties({ level: 3 }).pipe(Effect.repeat(Schedule.spaced("300 millis")), Effect.forkScoped)
      )
      const { detail, result } = seen.find(({ name }) => name === "answers a property set")!
      assert.deepStrictEqual([result, detail], ["works", "code 200, after 1 delivery"])
    }).pipe(Effect.provide(
      MqttTestServer.layer(StorageMemory.layer, {}, { quiet: "1 second", longest: "3 seconds", shadow: "3 seconds" })
    )))

  it.effect("a device that comes, reports and leaves has connected, and is asked when it is back", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
      const wiretap = yield* Wiretap.open({ listen: "mqtt://127.0.0.1:0", broker: (yield* MqttTestServer).tcp.url })
      const connect = SimulatedDevice.connectMqtt({ ...device, url: wiretap.url, on: does })
      yield* Effect.scoped(Effect.flatMap(connect, (connected) => connected.postProperties({ level: 3 })))
      yield* CloudState.untilStatus(device, "offline")
      const scope = yield* Effect.scope
      const session = Effect.scoped(Effect.flatMap(connect, (connected) => connected.closed))
      const comesBack = Effect.forkIn(Effect.ignore(Effect.repeat(session, Schedule.forever)), scope)
      const seen: Array<Outcome> = []
      const report = (outcome: Outcome) =>
        Effect.andThen(
          Effect.sync(() => void seen.push(outcome)),
          outcome.name === "reports properties" ? Effect.asVoid(comesBack) : Effect.void
        )
      yield* checkDevice(device, { wiretap, patience: 20 }, report)
      const results = Object.fromEntries(seen.map(({ name, result }) => [name, result]))
      assert.deepInclude(results, {
        "connects with a signature": "works",
        "reports properties": "works",
        "answers a property set": "works"
      })
    }))

  it.effect("a device that runs the version already is offered none", () =>
    Effect.gen(function*() {
      const seen = yield* outcomes(
        does,
        (connected) => Effect.andThen(connected.inform("2.0.0"), connected.postProperties({ level: 3 }))
      )
      const { detail, result } = seen.find(({ name }) => name === "takes an upgrade")!
      assert.deepStrictEqual([result, detail], ["skipped", "it runs 2.0.0 already"])
    }))

  it.effect("a device may connect over IPv6", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
      const broker = (yield* MqttTestServer).tcp.url
      const { heard, url } = yield* Wiretap.open({ listen: "mqtt://[::1]:0", broker })
      const connected = yield* SimulatedDevice.connectMqtt({ ...device, url })
      yield* connected.postProperties({ level: 3 })
      assert.strictEqual(heard("thing.event.property.post"), 1)
    }))

  it.effect("a device that does not connect is said to", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* outcomes({})).map(({ result }) => result), ["fails", "skipped"])
    }))
})
