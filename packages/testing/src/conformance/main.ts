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
import * as FirmwareServer from "./FirmwareServer.ts"
import * as Wiretap from "./Wiretap.ts"

const usage = `What of the device protocol works?

  device-cloud-testing conform --listen mqtt://0.0.0.0:1883 [--service ID] [--wait SECONDS]
      [--firmware FILE --firmware-version VERSION [--firmware-url http://HOST:PORT]]
      plays the cloud for a real device: prints the names and the secret that the device
      needs, waits for it (60 seconds) and checks it. With mqtts: --cert FILE --key FILE (PEM).
      Firmware is offered only if you name it: the device installs it. It comes in blocks over
      MQTT, or from an address of this machine, under which the device reaches it.

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
      "firmware",
      "firmware-version",
      "firmware-url",
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

const signs = { works: "✓", fails: "✗", "not supported": "○", skipped: "–" }

/** Prints each outcome and counts what fails. */
const printed = (failures: Ref.Ref<number>): Report => ({ detail, name, result }) =>
  Effect.andThen(
    Console.log(
      `${signs[result]} ${name}${result === "not supported" ? ", not supported" : ""}${detail && `: ${detail}`}`
    ),
    result === "fails" ? Ref.update(failures, (count) => count + 1) : Effect.void
  )

const file = (name: string) => readFileSync(given(name)!, "utf8")

/** Plays the cloud. */
const ofDevice = Effect.fnUntraced(function*(listen: string, report: Report) {
  const firmware = given("firmware") === undefined
    ? undefined
    : { version: given("firmware-version") ?? "", bytes: readFileSync(given("firmware")!) }
  const cloud = MqttServer.layer({ host: "127.0.0.1", tcp: { port: 0 } }).pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )
  yield* Effect.gen(function*() {
    const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
    const address = given("firmware-url")
    const server = firmware === undefined || address === undefined
      ? undefined
      : yield* FirmwareServer.open(address, firmware.bytes)
    const wiretap = yield* Wiretap.open({
      listen,
      broker: (yield* MqttServer).mqtt!,
      tls: listen.startsWith("mqtts:") ? { cert: file("cert"), key: file("key") } : undefined
    })
    yield* Console.log(
      `Connect the device to ${wiretap.url}\n  product key    ${device.productKey}\n` +
        `  device name    ${device.deviceName}\n  device secret  ${device.deviceSecret}`
    )
    const patience = Number(given("wait") ?? 60)
    yield* checkDevice(device, { wiretap, patience, service: given("service"), firmware, server }, report)
  }).pipe(Effect.provide(cloud), Effect.scoped)
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
