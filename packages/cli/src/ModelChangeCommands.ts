/**
 * `device-cloud models diff` and `device-cloud types`: what a model means for those
 * who go by it.
 */
import { compatible, type InvalidThingModel, ModelFormat, modelTypes, type ThingModel } from "@device-cloud/core"
import { Console, Effect, FileSystem, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failure, unwritable } from "./CommandFailure.ts"
import { formatOf, read, readDocument } from "./ModelCommands.ts"
import * as Output from "./Output.ts"
import { Server } from "./Server.ts"

const ofFile = Effect.fnUntraced(function*(file: string) {
  const document = yield* readDocument(file)
  return yield* decoded(formatOf(document), document, file)
})

const ofProduct = Effect.fnUntraced(function*(productKey: string) {
  const { thing_model } = yield* read(productKey, "metadata")
  return yield* decoded("metadata", thing_model, productKey)
})

const decoded = (format: "metadata" | "tsl" | "sdf", document: unknown, where: string) =>
  ModelFormat.decode(format, document).pipe(
    Effect.mapBoth({
      onSuccess: ({ model }): ThingModel => model,
      onFailure: (error: InvalidThingModel) => failure(`${where}: ${error.message}`)
    })
  )

const diffCommand = Command.make(
  "diff",
  { product: Argument.String("product-key"), file: Argument.String("file") },
  Effect.fnUntraced(function*({ file, product }) {
    const [before, after] = [yield* ofProduct(product), yield* ofFile(file)]
    const changes = (["properties", "events", "services"] as const).flatMap((list) => [
      ...without(after[list], before[list]).map((id) => ({ change: "added", list, id })),
      ...without(before[list], after[list]).map((id) => ({ change: "removed", list, id }))
    ])
    const breaks = compatible(before, after)
    if (!(yield* Output.json({ changes, breaks }))) {
      for (const { change, id, list } of changes) yield* Console.log(`${change === "added" ? "+" : "-"} ${list}.${id}`)
      if (breaks.length > 0) yield* Output.table(breaks, ["whom", "element", "id", "message"])
      else yield* Console.log("Nothing breaks.")
    }
    if (breaks.length > 0) return yield* failure(`The model of ${file} breaks what goes by that of ${product}.`)
  })
).pipe(
  Command.withDescription(
    "Say what breaks, and for whom, when the thing model of a product becomes that of a file. Ends with 1 if something does."
  ),
  Command.withShortDescription("Say what breaks when a model becomes that of a file"),
  Command.provide(Server.layer)
)

const without = (
  these: ReadonlyArray<{ readonly id: string }>,
  those: ReadonlyArray<{ readonly id: string }>
): ReadonlyArray<string> => these.flatMap(({ id }) => those.some((other) => other.id === id) ? [] : [id])

/** The command of `models`. */
export const modelChangeCommands = [diffCommand]

/** Writes a stored model as TypeScript. */
export const typesCommand = Command.make(
  "types",
  {
    product: Argument.String("product-key"),
    name: Flag.String("name").pipe(Flag.withDescription("The name of the constant"), Flag.withDefault("model")),
    out: Flag.String("out").pipe(Flag.withDescription("The file; default: the standard output"), Flag.optional)
  },
  Effect.fnUntraced(function*({ name, out, product }) {
    const text = modelTypes(yield* ofProduct(product), name)
    if (Option.isNone(out)) return yield* Console.log(text.trimEnd())
    yield* (yield* FileSystem.FileSystem).writeFileString(out.value, text).pipe(
      Effect.mapError(unwritable(out.value))
    )
  })
).pipe(
  Command.withDescription(
    "Write the thing model of a product as TypeScript: with it, properties, events and services have types."
  ),
  Command.withShortDescription("Write a thing model as TypeScript"),
  Command.provide(Server.layer)
)
