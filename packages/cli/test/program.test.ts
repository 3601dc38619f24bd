import { MqttServer } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Queue, Stream } from "effect"
import { ChildProcess } from "effect/process"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, existsSync, openSync } from "node:fs"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { json, serverUrl } from "./Cli.ts"

const main = fileURLToPath(new URL("../.bundle/main.js", import.meta.url))

/** The program `device-cloud` in a process of its own, which `vitest.bundles.ts` makes. */
const program = (url: string, ...args: ReadonlyArray<string>) =>
  ChildProcess.make(process.execPath, [main, ...args], {
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", DEVICE_CLOUD_URL: url, DEVICE_CLOUD_KEY: ownerKey }
  })

/** A way to the server that can be cut. */
const proxy = Effect.fnUntraced(function*(to: string) {
  const { hostname, port } = new URL(to)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const upstream = connect(Number(port), hostname)
    for (const [one, other] of [[socket, upstream], [upstream, socket]] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on("error", () => other.destroy())
      one.on("close", () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.close())
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
    })
  }
})

const cloud = MqttServer.layer({ host: "127.0.0.1", tcp: { port: 0 } }).pipe(
  Layer.provideMerge(testApi(StorageMemory.layer))
)

layer(cloud, { excludeTestServices: true })("the program", (it) => {
  it.effect("prints on the standard output what was asked for, and ends with a code", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const url = yield* serverUrl
      const found = yield* program(url, "products", "get", product_key, "--json")
      assert.strictEqual(
        JSON.parse(yield* Stream.mkString(Stream.decodeText(found.stdout))).product_info.product_key,
        product_key
      )
      assert.strictEqual(yield* found.exitCode, 0)
      const missing = yield* program(url, "products", "get", "nope")
      assert.strictEqual(yield* Stream.mkString(Stream.decodeText(missing.stdout)), "")
      assert.match(
        yield* Stream.mkString(Stream.decodeText(missing.stderr)),
        /^There is no product nope .*\(40401\)\n$/
      )
      assert.strictEqual(yield* missing.exitCode, 1)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("ends without an error when nobody reads any more what it prints", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const env = { HOME: "/nonexistent", DEVICE_CLOUD_URL: yield* serverUrl, DEVICE_CLOUD_KEY: ownerKey }
      const watch = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, [main, "watch", "--product", product_key], { env })),
        (child) => Effect.sync(() => child.kill())
      )
      watch.stdout.once("data", () => watch.stdout.destroy())
      const ended = Effect.promise(() => Promise.all([text(watch.stderr), once(watch, "exit")]))
      const happening = Effect.forever(Effect.andThen(createDevice(product_key), Effect.sleep("100 millis")))
      assert.deepStrictEqual(yield* Effect.raceFirst(ended, happening), ["", [130, null]])
    }).pipe(Effect.scoped))

  // A device that is always full, as Linux has it.
  it.effect.runIf(existsSync("/dev/full"))(
    "fails with a sentence when what it prints cannot be written",
    () =>
      Effect.gen(function*() {
        const env = { HOME: "/nonexistent", DEVICE_CLOUD_URL: yield* serverUrl, DEVICE_CLOUD_KEY: ownerKey }
        for (const args of [["--help"], ["completion", "bash"], ["products", "list", "--json"]]) {
          const full = openSync("/dev/full", "w")
          const child = spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", full, "pipe"] })
          closeSync(full)
          const [said, ended] = yield* Effect.promise(() => Promise.all([text(child.stderr!), once(child, "exit")]))
          assert.match(said, /^What is printed cannot be written: ENOSPC/m, args[0])
          assert.deepStrictEqual(ended, [1, null])
        }
      })
  )

  it.effect("watch misses nothing when its connection breaks", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { cut, url } = yield* proxy(yield* serverUrl)
      const watch = yield* program(url, "watch", "--product", product_key, "--json")
      const names = yield* Queue.unbounded<string>()
      yield* watch.stdout.pipe(
        Stream.decodeText,
        Stream.splitLines,
        Stream.runForEach((line) => Queue.offer(names, JSON.parse(line).data.device_name)),
        Effect.forkScoped
      )
      // Devices are created until the first of them is told: then the stream is open.
      let created = 0
      const create = Effect.suspend(() => createDevice(product_key, { device_name: `lamp-${created++}` })).pipe(
        Effect.uninterruptible
      )
      yield* Effect.raceFirst(Queue.take(names), Effect.forever(Effect.andThen(create, Effect.sleep("100 millis"))))
      yield* cut
      const last = `lamp-${created}`
      yield* create
      let told: string
      const later: Array<string> = []
      do {
        told = yield* Queue.take(names)
        later.push(told)
      } while (told !== last)
      // Each that came after the first one, once and in order.
      const from = created - later.length
      assert.deepStrictEqual(later, later.map((_, i) => `lamp-${from + i}`))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("simulated devices report values of their model, and obey", () =>
    Effect.gen(function*() {
      const { mqtt } = yield* MqttServer
      const simulate = yield* program(yield* serverUrl, "simulate", "--mqtt", mqtt!, "--devices", "2", "--json")
      const reports = yield* Queue.unbounded<{ readonly device_id: string; readonly properties: object }>()
      yield* simulate.stdout.pipe(
        Stream.decodeText,
        Stream.splitLines,
        Stream.map((line) => JSON.parse(line)),
        Stream.filter(({ type }) => type === "property"),
        Stream.runForEach(({ data }) => Queue.offer(reports, data)),
        Effect.forkScoped
      )
      const { device_id, properties } = yield* Queue.take(reports)
      assert.hasAllKeys(properties, ["Temperature", "Humidity", "TargetTemperature", "PowerSwitch"])
      const set = yield* json("devices", "set", device_id, "TargetTemperature=30", "--wait", "20")
      assert.strictEqual(set.state, "succeeded")
      let obeyed: object
      do {
        obeyed = (yield* Queue.take(reports)).properties
      } while (Object.keys(obeyed).length > 1)
      assert.containSubset(obeyed, { TargetTemperature: { value: 30 } })
      assert.strictEqual((yield* json("devices", "list", "--keyword", "sim-")).total, 2)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})
