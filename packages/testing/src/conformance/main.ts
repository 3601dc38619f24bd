#!/usr/bin/env node
/**
 * The program `device-cloud-testing`: says what of the protocol a device or a
 * cloud does.
 */
import { DeviceCloud, Objects } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Cause, Console, Effect, Exit, Layer, Ref } from "effect"
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

/** The options that have a value. */
const named = [
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
] as const
type Named = typeof named[number]

/** The arguments. Those that cannot be read end the program. */
const readArguments = () => {
  const text = { type: "string" } as const
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        ...Object.fromEntries(named.map((name) => [name, text])) as Record<Named, typeof text>,
        help: { type: "boolean", short: "h" }
      }
    })
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}\n`)
    process.exit(2)
  }
}

const { positionals, values } = readArguments()
const given = (name: Named) => values[name]

const signs = { works: "✓", fails: "✗", "not supported": "○", skipped: "–" }

/** Prints each outcome and counts what fails. */
const printed = (failures: Ref.Ref<number>): Report => ({ detail, name, result }) =>
  Effect.andThen(
    Console.log(
      `${signs[result]} ${name}${result === "not supported" ? ", not supported" : ""}${detail && `: ${detail}`}`
    ),
    result === "fails" ? Ref.update(failures, (count) => count + 1) : Effect.void
  )

/** What an option says that must be there. */
const needed = (name: Named) =>
  Effect.fromNullishOr(given(name)).pipe(
    Effect.mapError(() => new Unexpected({ message: `--${name} is missing` }))
  )

/** The file that an option names. */
const file = Effect.fnUntraced(function*(name: Named) {
  const path = yield* needed(name)
  return yield* Effect.try({
    try: () => readFileSync(path),
    catch: (error) => new Unexpected({ message: `--${name}: ${(error as Error).message}` })
  })
})

const text = (name: Named) => Effect.map(file(name), String)

/** Fails unless an option is an address of one of those forms. */
const checkAddress = (name: Named, forms: ReadonlyArray<string>) => {
  const address = given(name)
  return address === undefined || URL.canParse(address) && forms.includes(new URL(address).protocol.slice(0, -1))
    ? Effect.void
    : Effect.fail(new Unexpected({ message: `--${name} must be an address such as ${forms[0]}://…, not ${address}` }))
}

/** Plays the cloud. */
const ofDevice = Effect.fnUntraced(function*(listen: string, report: Report) {
  const firmware = given("firmware") === undefined
    ? undefined
    : { version: yield* needed("firmware-version"), bytes: yield* file("firmware") }
  const tls = listen.startsWith("mqtts:") ? { cert: yield* text("cert"), key: yield* text("key") } : undefined
  const patience = Number(given("wait") ?? 60)
  if (!(patience > 0)) return yield* Effect.fail(new Unexpected({ message: "--wait must be seconds, above 0" }))
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
      tls
    })
    yield* Console.log(
      `Connect the device to ${wiretap.url}\n  product key    ${device.productKey}\n` +
        `  device name    ${device.deviceName}\n  device secret  ${device.deviceSecret}`
    )
    yield* checkDevice(device, { wiretap, patience, service: given("service"), firmware, server }, report)
  }).pipe(Effect.provide(cloud), Effect.scoped)
})

const conform = Effect.gen(function*() {
  if (values.help) {
    yield* Console.log(usage)
    return 0
  }
  const failures = yield* Ref.make(0)
  const report = printed(failures)
  const listen = given("listen")
  const url = given("url")
  if (positionals[0] !== "conform" || (listen === undefined) === (url === undefined)) {
    return yield* Effect.fail(new Unexpected({ message: usage }))
  }
  yield* checkAddress("listen", ["mqtt", "mqtts"])
  yield* checkAddress("url", ["mqtt", "mqtts", "ws", "wss"])
  yield* checkAddress("http-url", ["http", "https"])
  if (listen !== undefined) yield* ofDevice(listen, report)
  else {
    const productKey = given("product-key")
    yield* Effect.scoped(checkCloud({
      url: url!,
      ...given("ca") === undefined ? {} : { ca: yield* text("ca") },
      httpUrl: given("http-url"),
      accessKey: given("access-key"),
      device: productKey === undefined
        ? undefined
        : { productKey, deviceName: given("device-name") ?? "", deviceSecret: given("device-secret") ?? "" }
    }, report))
  }
  return (yield* Ref.get(failures)) === 0 ? 0 : 1
})

// What was made on the cloud is removed, too, when a signal comes, or nobody reads any more what is printed.
const interruption = new AbortController()
const interrupt = () => interruption.abort()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt)
for (const stream of [process.stdout, process.stderr]) stream.on("error", interrupt)

const exit = await Effect.runPromiseExit(
  conform.pipe(Effect.catch((error) => Effect.as(Console.error(error.message), 2))),
  { signal: interruption.signal }
)
if (Exit.isSuccess(exit)) process.exit(exit.value)
if (!Cause.hasInterruptsOnly(exit.cause)) throw Cause.squash(exit.cause)
process.exit(130)
