/**
 * A command made from an operation of the API: parameters of the path become
 * arguments, those of the query and the members of the body become flags.
 */
import { Console, Effect, FileSystem, Option, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { failure, unreadable, usage } from "./CommandFailure.ts"
import { ShowSecret } from "./GlobalFlags.ts"
import { parseExactly } from "./JsonText.ts"
import { type Operation, type OperationId, type Parameter, readable } from "./Operation.ts"
import * as Output from "./Output.ts"
import { type Envelope, Server } from "./Server.ts"

/** What the description of an operation does not say. */
export interface OperationCommand {
  readonly operation: OperationId
  /** Default: the summary of the operation. */
  readonly summary?: string
  /** The columns of its table. */
  readonly columns?: ReadonlyArray<string>
  /** What the body has in addition: no flags are made for it. */
  readonly body?: Readonly<Record<string, unknown>>
  /** Members of the body that no flags are made for, because `complete` knows them. */
  readonly known?: ReadonlyArray<string>
  readonly complete?: (body: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>
  /** A member of the body that takes `name=value` arguments, by its path. */
  readonly assignments?: ReadonlyArray<string>
  /** It replaces what a GET of its path returns: members of the body that are not given stay as they are. */
  readonly replaces?: boolean
  /** Whether the response to such a body has a secret that no other shows. */
  readonly showsSecretOnce?: (body: Readonly<Record<string, unknown>>) => boolean
}

/** Makes the command `name`. */
export const make = (name: string, spec: OperationCommand, operations: ReadonlyMap<string, Operation>) => {
  const operation = operations.get(spec.operation)!
  const summary = spec.summary ?? operation.summary
  const bodyFlags = operation.members.filter((member) =>
    spec.body?.[member.name] === undefined && member.name !== spec.assignments?.[0] &&
    spec.known?.includes(member.name) !== true
  )
  const flags = [...operation.query, ...bodyFlags]
  const takesData = operation.takesBody && spec.assignments === undefined &&
    (bodyFlags.length > 0 || spec.body === undefined) && !bodyFlags.some(({ name }) => flagName(name) === "data")

  const config: Record<string, Argument.Argument<unknown> | Flag.Flag<unknown>> = {}
  for (const parameter of operation.pathParameters) {
    config[parameter.name] = Argument.String(argumentName(parameter.name)).pipe(
      Argument.withDescription(
        parameter.name === "device_id" ? "Its id, or product-key/device-name" : parameter.description
      )
    )
  }
  for (const parameter of flags) config[parameter.name] ??= flagOf(parameter)
  if (spec.assignments !== undefined) {
    config[assigned] = Argument.String("name=value").pipe(
      Argument.withDescription("Values are JSON, or text as it is"),
      Argument.variadic()
    )
  }
  if (takesData) {
    config[data] = Flag.String("data").pipe(
      Flag.withDescription("The whole body: JSON, @file, or - for the standard input; flags go over it"),
      Flag.withMetavar("json"),
      Flag.optional
    )
  }
  if (operation.isPaged) {
    config[all] = Flag.Boolean("all").pipe(Flag.withDescription("Read all pages"), Flag.withDefault(false))
  }

  const run = Effect.fnUntraced(function*(input: Readonly<Record<string, unknown>>) {
    const server = yield* Server
    const path = yield* filledPath(operation, input)
    const query = Object.fromEntries(operation.query.flatMap(({ name }) => {
      const value = valueOf(input[name])
      return value === undefined ? [] : [[name, Array.isArray(value) ? value.map(String) : String(value)]]
    }))
    const missing = operation.query.find(({ name, required }) => required && query[name] === undefined)
    if (missing !== undefined) return yield* usage(`--${flagName(missing.name)} is missing`)
    const body = operation.takesBody ? yield* bodyOf(operation, spec, bodyFlags, input, path) : undefined

    if (spec.showsSecretOnce?.(body ?? {}) === true && !(yield* ShowSecret)) {
      return yield* usage("Only this response shows the secret: add --show-secret to print it")
    }

    const read = (query: Readonly<Record<string, string | ReadonlyArray<string>>>) =>
      server.call({ method: operation.method, path, query, ...body === undefined ? {} : { body } })
    if (input[all] !== true) return yield* print(spec, yield* read(query))

    const results = yield* readAll((page) =>
      Effect.map(
        read({ ...query, page: String(page), page_size: "100" }),
        (response) => (response as Envelope).data as Page
      )
    )
    yield* print(spec, {
      code: 0,
      message: "success",
      data: { results, total: results.length, page: 1, page_size: results.length, pages: 1 }
    })
  })

  return Command.make(name, config, run).pipe(
    Command.withDescription(`${summary}. ${operation.description}`.trim()),
    Command.withShortDescription(summary),
    Command.provide(Server.layer)
  )
}

/** The arguments `name=value`, the flag `--data` and the flag `--all`, under names that no member has. */
const assigned = "name=value"
const data = "--data"
const all = "--all"

interface Page {
  readonly results: ReadonlyArray<object>
  readonly total: number
  readonly page: number
  readonly page_size: number
  readonly pages: number
}

/** How often a list is read whose entries come and go. */
const maxPasses = 5

/**
 * Reads all pages of a list. What comes or goes meanwhile moves others to pages that
 * were read before: then all are read again, a few times.
 */
const readAll = Effect.fnUntraced(function*<E, R>(
  read: (page: number) => Effect.Effect<Page, E, R>
): Effect.fn.Return<ReadonlyArray<object>, E, R> {
  for (let pass = 1;; pass++) {
    const pages = [yield* read(1)]
    while (pages.length < pages.at(-1)!.pages) pages.push(yield* read(pages.length + 1))
    const isSteady = pages.every(({ total }) => total === pages[0]!.total)
    if (!isSteady && pass < maxPasses) continue
    if (!isSteady) yield* Console.error("The list has changed while it was read: entries may be missing, or twice.")
    return pages.flatMap(({ results }) => results)
  }
})

const isPage = (value: unknown): value is { readonly results: ReadonlyArray<unknown> } & Partial<Page> =>
  typeof value === "object" && value !== null && "results" in value && Array.isArray(value.results)

/** Prints what an operation has returned. */
export const print = Effect.fnUntraced(function*(
  { columns, operation }: Pick<OperationCommand, "columns" | "operation">,
  response: Envelope | string
) {
  if (typeof response === "string") return yield* Output.text(response)
  if (yield* Output.json(response.data ?? {})) return
  const value = readable(operation, response)
  if (isPage(value)) {
    const { page, page_size: _, pages, results, total, ...beside } = value
    if (typeof results[0] === "string") { for (const entry of results) yield* Console.log(Output.cell(entry)) }
    else yield* Output.table(results as Page["results"], columns)
    if (pages !== undefined && pages > 1) yield* Console.error(`Page ${page} of ${pages}; ${total} in all.`)
    // Such as the cursor that reads on.
    for (const [name, member] of Object.entries(beside)) {
      if (member !== "") yield* Console.error(`${name.replaceAll("_", " ")}: ${Output.cell(member)}`)
    }
    return
  }
  if (value === undefined) return yield* Console.error("Done.")
  const [only, ...others] = Object.values(value as object)
  // {"device_info": {…}}
  const thing = others.length === 0 && typeof only === "object" && only !== null ? only : value as object
  if (Array.isArray(thing) && thing.every((item) => typeof item === "object")) {
    return yield* Output.table(thing, columns)
  }
  if (Object.keys(thing).length === 0) return yield* Console.error(columns === undefined ? "Done." : "None.")
  yield* Output.record(thing)
})

const argumentName = (name: string) => name.replaceAll("_", "-")
const flagName = (name: string) => name.replaceAll("_", "-").toLowerCase()

const isTexts = ({ anyOf, items, type }: Parameter["schema"]): boolean =>
  (type === "array" && items?.type === "string") || anyOf?.some(isTexts) === true

/** The flag of a parameter. An object, and a list of other things than texts, is JSON. */
const flagOf = ({ description, name, required, schema }: Parameter): Flag.Flag<unknown> => {
  const flag = flagName(name)
  const described = Flag.withDescription(required ? `${description} (required)`.trim() : description)
  const texts = schema.enum?.filter((value) => typeof value === "string")
  if (texts !== undefined && texts.length > 0 && texts.length === schema.enum?.length) {
    return Flag.Literals(flag, texts).pipe(described, Flag.optional)
  }
  if (isTexts(schema)) {
    return Flag.String(flag).pipe(
      Flag.withDescription(`${description} (repeatable)`.trim()),
      Flag.atLeast(0),
      Flag.map((values) => values.length === 0 ? undefined : values)
    )
  }
  switch (schema.type) {
    case "boolean":
      return Flag.Boolean(flag).pipe(described, Flag.optional)
    case "integer":
      return Flag.Int(flag).pipe(described, Flag.optional)
    case "number":
      return Flag.Finite(flag).pipe(described, Flag.optional)
    case "string":
      return Flag.String(flag).pipe(described, Flag.optional)
    default:
      return Flag.String(flag).pipe(
        Flag.withDescription(required ? `${description} (required)`.trim() : description),
        Flag.withMetavar("json"),
        Flag.mapTryCatch(parseExactly, (error) => error instanceof RangeError ? error.message : "not JSON"),
        Flag.optional
      )
  }
}

const valueOf = (value: unknown): unknown => Option.isOption(value) ? Option.getOrUndefined(value) : value

/** A value as one segment of a path. An address without it, or with dots, would lead to another operation. */
const segment = (name: string, value: string) =>
  /^\.{0,2}$/.test(value)
    ? Effect.fail(usage(`${name} must name something, not ${JSON.stringify(value)}`))
    : Effect.succeed(encodeURIComponent(value))

const filledPath = Effect.fnUntraced(function*(operation: Operation, input: Readonly<Record<string, unknown>>) {
  let path = operation.path
  for (const { name } of operation.pathParameters) {
    const text = String(input[name])
    const value = name === "device_id" ? yield* deviceId(text) : text
    path = path.replace(`{${name}}`, yield* segment(argumentName(name), value))
  }
  return path
})

/** The id of a device that is named by its id, or as `product-key/device-name`. */
export const deviceId = Effect.fnUntraced(function*(reference: string) {
  const slash = reference.indexOf("/")
  if (slash < 0) return reference
  const productKey = yield* segment("product-key", reference.slice(0, slash))
  const deviceName = yield* segment("device-name", reference.slice(slash + 1))
  const { data } = (yield* (yield* Server).call({
    method: "GET",
    path: `/products/${productKey}/device-names/${deviceName}/detail`
  })) as Envelope
  return (data as { readonly device_info: { readonly device_id: string } }).device_info.device_id
})

const bodyOf = Effect.fnUntraced(function*(
  operation: Operation,
  spec: OperationCommand,
  bodyFlags: ReadonlyArray<Parameter>,
  input: Readonly<Record<string, unknown>>,
  path: string
) {
  const given = valueOf(input[data])
  const body: Record<string, unknown> = { ...given === undefined ? {} : yield* readData(String(given)), ...spec.body }
  for (const { name } of bodyFlags) {
    const value = valueOf(input[name])
    if (value !== undefined) body[name] = value
  }
  if (spec.replaces === true) {
    if (Object.keys(body).length === 0) return yield* usage("Nothing to change: pass a flag, or --data")
    const now = yield* current(path)
    for (const { name } of bodyFlags) if (name in now) body[name] ??= now[name]
  }
  if (spec.assignments !== undefined) {
    yield* assign(body, spec.assignments, input[assigned] as ReadonlyArray<string>)
  }
  const whole = spec.complete?.(body) ?? body
  const missing = operation.members.filter(({ name, required }) => required && whole[name] === undefined)
  if (missing.length > 0) {
    return yield* usage(`${missing.map(({ name }) => `--${flagName(name)}`).join(", ")}: missing`)
  }
  return Object.keys(whole).length === 0 && operation.members.length > 0 ? undefined : whole
})

/** The members of what is there now. */
const current = Effect.fnUntraced(function*(path: string) {
  const { data } = (yield* (yield* Server).call({ method: "GET", path })) as Envelope
  const [only, ...others] = Object.values(data as object)
  return (others.length === 0 ? only : data) as Readonly<Record<string, unknown>>
})

/** `--data`: JSON, `@file`, or `-`. */
export const readData = Effect.fnUntraced(function*(argument: string) {
  const text = argument === "-"
    ? yield* Stream.mkString(Stream.decodeText((yield* Stdio.Stdio).stdin))
    : argument.startsWith("@")
    ? yield* Effect.mapError(
      (yield* FileSystem.FileSystem).readFileString(argument.slice(1)),
      unreadable(argument.slice(1))
    )
    : argument
  const value = yield* Effect.try({
    try: () => parseExactly(text),
    catch: (error) =>
      usage(error instanceof RangeError ? `--data: ${error.message}` : `--data must be JSON, not ${text}`)
  })
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Readonly<Record<string, unknown>>
    : yield* usage("--data must be a JSON object")
}, Effect.catchTag("PlatformError", (error) => Effect.fail(failure(error.message))))

/** Puts `name=value` arguments into the member of the body at that path. */
const assign = Effect.fnUntraced(function*(
  body: Record<string, unknown>,
  [member = "", inner]: ReadonlyArray<string>,
  assignments: ReadonlyArray<string>
) {
  const wrong = assignments.find((assignment) => assignment.indexOf("=") < 1)
  if (wrong !== undefined) return yield* usage(`Expected name=value, not ${wrong}`)
  const values = yield* Effect.try({
    try: () =>
      Object.fromEntries(assignments.map((assignment) => {
        const equals = assignment.indexOf("=")
        const text = assignment.slice(equals + 1)
        return [assignment.slice(0, equals), member === "tags" ? text : jsonOrText(text)]
      })),
    catch: (error) => usage((error as RangeError).message)
  })
  body[member] = inner === undefined ? values : { [inner]: values }
})

const jsonOrText = (text: string): unknown => {
  try {
    return parseExactly(text)
  } catch (error) {
    if (error instanceof RangeError) throw error
    return text
  }
}
