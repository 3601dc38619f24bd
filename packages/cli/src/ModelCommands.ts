/**
 * `device-cloud models`: thing models as documents.
 */
import { DeviceCloudClient } from "@device-cloud/http"
import { Console, Effect, FileSystem, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { explain, unreadable, unwritable, usage } from "./CommandFailure.ts"
import { parseJson } from "./JsonText.ts"
import * as Output from "./Output.ts"
import { patiently, Server } from "./Server.ts"

const formats = ["metadata", "tsl", "sdf"] as const
type Format = typeof formats[number]

const product = Argument.String("product-key")

type Document = Readonly<Record<string, unknown>>

/** Reads the model of a product. */
export const read = Effect.fnUntraced(function*(productKey: string, format: Format) {
  const { url } = yield* Server
  const cloud = yield* DeviceCloudClient
  const { data } = yield* patiently(cloud.thingModels.getThingModel({
    params: { product_key: productKey as never },
    query: { model_type: format }
  })).pipe(Effect.mapError(explain(url)))
  return data
})

const exportCommand = Command.make(
  "export",
  {
    product,
    format: Flag.Literals("format", formats).pipe(Flag.withDefault("metadata")),
    out: Flag.String("out").pipe(Flag.withDescription("The file; default: the standard output"), Flag.optional)
  },
  Effect.fnUntraced(function*({ format, out, product }) {
    const { thing_model } = yield* read(product, format)
    const text = JSON.stringify(thing_model, null, 2)
    if (Option.isNone(out)) return yield* Console.log(text)
    yield* (yield* FileSystem.FileSystem).writeFileString(out.value, `${text}\n`).pipe(
      Effect.mapError(unwritable(out.value))
    )
  })
).pipe(Command.withDescription("Write the thing model of a product, as metadata, tsl or sdf (RFC 9880)"))

const importCommand = Command.make(
  "import",
  {
    product,
    file: Argument.String("file"),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("Default: what the document looks like"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ file, format, product }) {
    const document = yield* readDocument(file)
    const cloud = yield* DeviceCloudClient
    const { url } = yield* Server
    const { data } = yield* patiently(cloud.thingModels.importThingModel({
      params: { product_key: product as never },
      payload: {
        model_type: Option.getOrElse(format, () => formatOf(document)),
        model_data: JSON.stringify(document)
      }
    })).pipe(Effect.mapError(explain(url)))
    if (yield* Output.json(data)) return
    yield* Console.log(`The model of ${product} is in version ${data.version}.`)
    for (const warning of data.warnings) yield* Console.error(`Warning: ${warning}`)
  })
).pipe(Command.withDescription("Replace the thing model of a product by that of a file"))

const showCommand = Command.make(
  "show",
  { product },
  Effect.fnUntraced(function*({ product }) {
    const data = yield* read(product, "metadata")
    if (yield* Output.json(data)) return
    const { events, properties, services } = data.thing_model as Readonly<Record<string, ReadonlyArray<Document>>>
    if (data.version === 0) return yield* Console.log(`${product} has no thing model.`)
    yield* Console.log(`Version ${data.version}`)
    yield* elements("Properties", properties, ({ accessMode, dataType, id, name }) => ({
      id,
      name,
      access: accessMode,
      type: typeText(dataType)
    }))
    yield* elements("Events", events, ({ eventType, id, name, outputData }) => ({
      id,
      name,
      type: eventType,
      outputs: parameters(outputData)
    }))
    yield* elements("Services", services, ({ callType, id, inputData, name, outputData }) => ({
      id,
      name,
      call: callType,
      inputs: parameters(inputData),
      outputs: parameters(outputData)
    }))
  })
).pipe(Command.withDescription("Show the properties, events and services of a product"))

/** The commands that the API has no operation for, or one that needs a file. */
export const modelCommands = [showCommand, importCommand, exportCommand]
  .map((command) => Command.provide(command as typeof showCommand, Server.layer))

/** Reads a thing model from a file. The bounds of vendors, such as 18446744073709551615, may be rounded. */
export const readDocument = Effect.fnUntraced(function*(file: string) {
  const text = yield* (yield* FileSystem.FileSystem).readFileString(file).pipe(
    Effect.mapError(unreadable(file))
  )
  const document = yield* Effect.try({
    try: () => parseJson(text),
    catch: (error) => usage(error instanceof RangeError ? `${file}: ${error.message}` : `${file} is not JSON`)
  })
  return isObject(document) ? document : yield* usage(`${file} is not a JSON object`)
})

const isObject = (value: unknown): value is Document =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The form in which a model is written. */
export const formatOf = (document: Document): Format => {
  if (Object.keys(document).some((name) => name.startsWith("sdf") || name === "info")) return "sdf"
  const elements = ["properties", "events", "services"].flatMap((name) => document[name])
  return elements.some((element) => isObject(element) && "identifier" in element) ? "tsl" : "metadata"
}

const elements = Effect.fnUntraced(function*(
  title: string,
  of: ReadonlyArray<Document> | undefined,
  row: (element: Document) => object
) {
  const own = (of ?? []).filter(({ id }) => !implied.has(String(id)))
  if (own.length === 0) return
  yield* Console.log(`\n${title}`)
  yield* Output.table(own.map(row))
})

/** What follows from the properties of each model. */
const implied = new Set(["post", "set", "get"])

/** A data type in short, such as `float 0…100 step 0.5 °C`. */
const typeText = (dataType: unknown): string => {
  const { type, ...rest } = dataType as Document
  const details = Object.entries(rest).flatMap(([name, value]) =>
    value === "" || value === null ? [] : [`${name} ${Output.cell(value)}`]
  )
  return [Output.cell(type), ...details].join(" ")
}

const parameters = (of: unknown): string =>
  ((of ?? []) as ReadonlyArray<Document>).map(({ id }) => Output.cell(id)).join(", ")
