#!/usr/bin/env node
/**
 * The program `device-cloud-testing`: says what of the protocol a device or a
 * cloud does.
 */
import { DeviceCloud, Objects } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Console, Effect, Layer, Ref } from "effect"
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"
import * as Fixtures from "../Fixtures.ts"
import { type Report, Unexpected } from "./Check.ts"
import { checkCloud } from "./CloudChecks.ts"
import { checkDevice } from "./DeviceChecks.ts"

const usage = `What of the device protocol works?

  device-cloud-testing conform --listen mqtt://0.0.0.0:1883 [--service ID] [--wait SECONDS]
      plays the cloud for a real device: prints the names and the secret that the device
      needs, waits for it (60 seconds) and checks it. With mqtts: --cert FILE --key FILE (PEM).

  device-cloud-testing conform --url mqtts://HOST:8883 [--ca FILE] [--http-url http://HOST:8080]
      [--access-key dck_…] [--product-key … --device-name … --device-secret …]
      checks a real cloud with simulated devices. It makes and removes a device of its own
      with an access key, or takes the one that is named.

It prints a line for each check and ends with 1 if any fails.`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(
    [
      "listen",
      "service",
      "wait",
      "cert",
      "key",
      "url",
      "ca",
      "http-url",
      "access-key",
      "product-key",
      "device-name",
      "device-secret"
    ].map((name) => [name, { type: "string" as const }])
  )
})
const given = (name: string) => values[name] as string | undefined

const signs = { works: "✓", fails: "✗", skipped: "–" }

/** Prints each outcome and counts what fails. */
const printed = (failures: Ref.Ref<number>): Report => ({ detail, name, result }) =>
  Effect.andThen(
    Console.log(`${signs[result]} ${name}${detail === "" ? "" : `: ${detail}`}`),
    result === "fails" ? Ref.update(failures, (count) => count + 1) : Effect.void
  )

const file = (name: string) => readFileSync(given(name)!, "utf8")

/** Plays the cloud. */
const ofDevice = Effect.fnUntraced(function*(listen: string, report: Report) {
  const { hostname, port, protocol } = new URL(listen)
  const at = { port: Number(port) }
  const server = MqttServer.layer({
    host: hostname,
    ...protocol === "mqtts:" ? { tls: { ...at, certificate: file("cert"), key: file("key") } } : { tcp: at }
  })
  const cloud = server.pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )
  yield* Effect.gen(function*() {
    const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
    const { mqtt, mqtts } = yield* MqttServer
    yield* Console.log(
      `Connect the device to ${mqtts ?? mqtt}\n  product key    ${device.productKey}\n` +
        `  device name    ${device.deviceName}\n  device secret  ${device.deviceSecret}`
    )
    yield* checkDevice(device, { patience: Number(given("wait") ?? 60), service: given("service") }, report)
  }).pipe(Effect.provide(cloud))
})

const conform = Effect.gen(function*() {
  const failures = yield* Ref.make(0)
  const report = printed(failures)
  const listen = given("listen")
  const url = given("url")
  if (positionals[0] !== "conform" || (listen === undefined) === (url === undefined)) {
    return yield* Effect.fail(new Unexpected({ message: usage }))
  }
  if (listen !== undefined) yield* ofDevice(listen, report)
  else {
    const productKey = given("product-key")
    yield* Effect.scoped(checkCloud({
      url: url!,
      ...given("ca") === undefined ? {} : { ca: file("ca") },
      httpUrl: given("http-url"),
      accessKey: given("access-key"),
      device: productKey === undefined
        ? undefined
        : { productKey, deviceName: given("device-name") ?? "", deviceSecret: given("device-secret") ?? "" }
    }, report))
  }
  return (yield* Ref.get(failures)) === 0 ? 0 : 1
})

const code = await Effect.runPromise(conform.pipe(
  Effect.catch((error) => Effect.as(Console.error(error.message), 2))
))
process.exit(code)
