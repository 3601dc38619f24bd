/**
 * `device-cloud devices import`: makes the devices of a file that are not there yet.
 */
import { Code, DeviceCloudClient } from "@device-cloud/http"
import { Console, Effect, FileSystem, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type ApiFailure, explain, failure, isApiFailure, unreadable } from "./CommandFailure.ts"
import { type DeviceLine, formatOf, parse, type RefusedLine } from "./DeviceFile.ts"
import * as Output from "./Output.ts"
import { patiently, Server } from "./Server.ts"

/** Devices of a batch. The cloud takes ten times as many; a refusal costs less so. */
const chunkSize = 1000

/** Calls at the same time. */
const concurrency = 8

const isNoSuchDevice = (error: unknown): boolean => isApiFailure(error) && error.code === Code.noSuchDevice

/** The failure of a call that names devices which are there already. */
const taken: number = Code.taken

/** Whether a call was refused for what it says. Otherwise none of the others succeeds: the server is away, or does not take the key. */
const isOfLines = (error: unknown): error is ApiFailure =>
  isApiFailure(error) && error.code < 50_000 && error.code !== Code.unauthorized && error.code !== Code.accessKeyExpired

/** What became of a file. */
interface Report {
  created: number
  existing: number
  readonly failed: Array<RefusedLine>
}

export const importCommand = Command.make(
  "import",
  {
    file: Argument.String("file").pipe(Argument.withDescription("CSV, or JSON objects in lines")),
    product: Flag.String("product").pipe(
      Flag.withDescription("The product key of lines that have none"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ file, product }) {
    const text = yield* Effect.mapError(
      (yield* FileSystem.FileSystem).readFileString(file),
      unreadable(file)
    )
    const { devices, refused } = parse(text, formatOf(file, text), Option.getOrUndefined(product))
    const report: Report = { created: 0, existing: 0, failed: [...refused] }

    // A batch has names alone: what is more than a name is made one by one.
    const plain = devices.filter((device) => isPlain(device))
    const others = devices.filter((device) => !isPlain(device))
    const tell = Effect.suspend(() => progress(report, devices.length + refused.length))
    for (const [productKey, ofProduct] of byProduct(plain)) {
      for (let start = 0; start < ofProduct.length; start += chunkSize) {
        yield* createBatch(productKey, ofProduct.slice(start, start + chunkSize), report)
        yield* tell
      }
    }
    for (let start = 0; start < others.length; start += chunkSize) {
      const some = others.slice(start, start + chunkSize)
      yield* Effect.forEach(some, (device) => createOne(device, report), { concurrency, discard: true })
      yield* tell
    }

    const failed = report.failed.toSorted((a, b) => a.line - b.line)
    if (!(yield* Output.json({ ...report, failed }))) {
      yield* Console.log(`${report.created} created, ${report.existing} there before, ${failed.length} failed.`)
      if (failed.length > 0) yield* Output.table(failed, ["line", "device_name", "reason"])
    }
    if (failed.length > 0) {
      return yield* failure("Correct these lines and import the file again: nothing is made twice.")
    }
  })
).pipe(
  Command.withDescription(
    "Create the devices of a file, in batches. Columns: device_name, and perhaps product_key, nickname, tags. What is there already stays, so that an import can be repeated. The cloud makes the secrets: `devices export` has them."
  ),
  Command.withShortDescription("Create the devices of a file"),
  Command.provide(Server.layer)
)

const isPlain = ({ device_secret, nickname, tags }: DeviceLine): boolean =>
  device_secret === "" && nickname === undefined && tags === undefined

const byProduct = (devices: ReadonlyArray<DeviceLine>): ReadonlyMap<string, ReadonlyArray<DeviceLine>> => {
  const products = new Map<string, Array<DeviceLine>>()
  for (const device of devices) {
    const others = products.get(device.product_key)
    if (others === undefined) products.set(device.product_key, [device])
    else others.push(device)
  }
  return products
}

const progress = ({ created, existing, failed }: Report, all: number) =>
  Console.error(`${created + existing + failed.length} of ${all}`)

/** Creates devices of a product together, but for those that the cloud names as taken. */
const createBatch = Effect.fnUntraced(function*(
  productKey: string,
  devices: ReadonlyArray<DeviceLine>,
  report: Report
) {
  const { url } = yield* Server
  const cloud = yield* DeviceCloudClient
  let rest = devices
  while (rest.length > 0) {
    const refusal = yield* patiently(cloud.batches.createBatch({
      params: { product_key: productKey as never },
      payload: { device_names: rest.map(({ device_name }) => device_name) as never, desc: "import" as never }
    })).pipe(Effect.as(undefined), Effect.catch(Effect.succeed))
    if (refusal === undefined) {
      report.created += rest.length
      return
    }
    if (!isOfLines(refusal)) return yield* explain(url)(refusal)
    if (refusal.code !== taken) {
      const { message } = explain(url)(refusal)
      report.failed.push(...rest.map(({ device_name, line }) => ({ line, device_name, reason: message })))
      return
    }
    const names = new Set((refusal.data as { readonly device_names: ReadonlyArray<string> }).device_names)
    const free = rest.filter(({ device_name }) => !names.has(device_name))
    report.existing += rest.length - free.length
    rest = free
  }
})

/** Creates a device, or finds it, and gives it its nickname and tags. */
const createOne = Effect.fnUntraced(function*(device: DeviceLine, report: Report) {
  const { url } = yield* Server
  const cloud = yield* DeviceCloudClient
  const { device_name, device_secret, line, nickname, product_key, tags } = device
  const params = { product_key: product_key as never, device_name: device_name as never }
  const fail = (reason: string) => void report.failed.push({ line, device_name, reason })
  const refused = (error: unknown) =>
    isOfLines(error) ? Effect.sync(() => fail(explain(url)(error).message)) : Effect.fail(explain(url)(error))

  const found = yield* patiently(cloud.devices.getDeviceByName({ params })).pipe(
    Effect.map(({ data }) => data.device_info),
    Effect.catchIf(isNoSuchDevice, () => Effect.void),
    Effect.result
  )
  if (found._tag === "Failure") return yield* refused(found.failure)
  const existing = found.success
  if (device_secret !== "" && existing?.device_secret !== device_secret) {
    return fail("device_secret: expected none, or that of the device: the cloud makes secrets itself")
  }
  const outcome = yield* Effect.gen(function*() {
    const id = existing?.device_id ?? (yield* patiently(cloud.devices.createDevice({
      params: { product_key: product_key as never },
      payload: { device_name: device_name as never, ...nickname === undefined ? {} : { nickname: nickname as never } }
    }))).data.device_id
    if (existing !== undefined && nickname !== undefined && nickname !== existing.nickname) {
      yield* patiently(cloud.devices.changeDevice({
        params: { device_id: id as never },
        payload: { nickname: nickname as never }
      }))
    }
    if (tags !== undefined) {
      yield* patiently(cloud.devices.setDeviceTags({ params: { device_id: id as never }, payload: { tags } }))
    }
  }).pipe(Effect.result)
  if (outcome._tag === "Failure") return yield* refused(outcome.failure)
  if (existing === undefined) report.created++
  else report.existing++
})
