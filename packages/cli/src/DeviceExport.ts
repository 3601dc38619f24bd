/**
 * `device-cloud devices export`: the devices of the project as a file.
 */
import { DeviceCloudClient } from "@device-cloud/http"
import { Console, Effect, FileSystem, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { explain, failure, unwritable } from "./CommandFailure.ts"
import { csvLine } from "./DeviceFile.ts"
import { ShowSecret } from "./GlobalFlags.ts"
import * as Output from "./Output.ts"
import { patiently, Server } from "./Server.ts"

/** The most that a page may have. */
const pageSize = 100

/** One reading of all pages. */
interface Pass {
  readonly page: number
  /** Devices when the page before was read. */
  readonly total: number
  /** Whether devices were deleted meanwhile: others have moved to pages that were read before. */
  readonly hasShrunk: boolean
  /** Devices that no pass before had. */
  readonly found: number
}

const firstPass: Pass = { page: 1, total: 0, hasShrunk: false, found: 0 }

/** All pages are read again when devices may be missing, until there are none. */
const next = (
  { found, hasShrunk, page, total }: Pass,
  data: { readonly total: number; readonly pages: number },
  more: number
): Option.Option<Pass> => {
  const pass = { page: page + 1, total: data.total, hasShrunk: hasShrunk || data.total < total, found: found + more }
  if (page < data.pages) return Option.some(pass)
  return pass.hasShrunk && pass.found > 0 ? Option.some(firstPass) : Option.none()
}

export const exportCommand = Command.make(
  "export",
  {
    product: Flag.String("product").pipe(Flag.withDescription("Devices of this product key"), Flag.optional),
    format: Flag.Literals("format", ["csv", "ndjson"]).pipe(Flag.withDefault("csv")),
    out: Flag.String("out").pipe(
      Flag.withDescription("The file, which you alone can read; default: the standard output"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ format, out, product }) {
    const { url } = yield* Server
    const cloud = yield* DeviceCloudClient
    const showsSecrets = yield* ShowSecret
    const columns = [
      "product_key",
      "device_name",
      ...showsSecrets ? ["device_secret" as const] : [],
      "nickname",
      "tags"
    ] as const
    const ofProduct = Option.isSome(product) ? { product_key: product.value as never } : {}
    const read = (page: number, page_size: number) =>
      patiently(cloud.devices.listDevices({ query: { page, page_size, ...ofProduct } })).pipe(
        Effect.mapError(explain(url))
      )
    // Before a file that is there is overwritten.
    if (showsSecrets && (yield* read(1, 1)).data.results[0]?.device_secret === Output.masked) {
      return yield* failure("The access key has the role viewer, which reads no secrets: --show-secret needs operator")
    }

    // Devices that come meanwhile are in front: a device may be in two pages, but is in the file once.
    const seen = new Set<string>()
    const lines = Stream.paginate(
      firstPass,
      (pass) =>
        read(pass.page, pageSize).pipe(
          Effect.map(({ data }) => {
            const devices = data.results.filter(({ device_id }) => seen.size < seen.add(device_id).size)
            return [devices, next(pass, data, devices.length)] as const
          })
        )
    ).pipe(
      Stream.map((device) =>
        format === "csv"
          ? csvLine(columns.map((column) => textOf(device[column])))
          : JSON.stringify(Object.fromEntries(columns.map((column) => [column, device[column]])))
      )
    )
    const text = format === "csv" ? Stream.concat(Stream.make(columns.join(",")), lines) : lines
    if (Option.isNone(out)) return yield* Stream.runForEach(text, Console.log)
    const fs = yield* FileSystem.FileSystem
    const write = Stream.run(
      text.pipe(Stream.map((line) => `${line}\n`), Stream.encodeText),
      fs.sink(out.value, { mode: 0o600 })
    )
    yield* Effect.andThen(closeToOthers(fs, out.value), write).pipe(
      Effect.catchTag("PlatformError", (error) => Effect.fail(unwritable(out.value)(error)))
    )
    yield* Console.error(`${seen.size} devices.`)
  })
).pipe(
  Command.withDescription(
    "Write the devices of the project as CSV, or as JSON objects in lines: product_key, device_name, nickname, tags, and with --show-secret device_secret."
  ),
  Command.withShortDescription("Write the devices of the project as a file"),
  Command.provide(Server.layer)
)

/** A file that was there before keeps its mode when it is written. What is no file, such as `/dev/stdout`, is left alone. */
const closeToOthers = (fs: FileSystem.FileSystem, file: string) =>
  Effect.option(fs.stat(file)).pipe(
    Effect.flatMap((found) => Option.exists(found, ({ type }) => type === "File") ? fs.chmod(file, 0o600) : Effect.void)
  )

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : Object.keys(value as object).length === 0 ? "" : JSON.stringify(value)
