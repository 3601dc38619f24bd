/**
 * Failures of the API: how one is declared, and those that any route can have.
 *
 * A failure is a schema with its own code, HTTP status and description. An
 * endpoint lists the failures that its handler can have, and each middleware
 * lists its own, so the OpenAPI description and the typed client know them.
 *
 * ```ts
 * const NoSuchShelf = failure("NoSuchShelf", 40450, "The warehouse has no such shelf")
 *
 * HttpApiEndpoint.get("getShelf", "/shelves/:id", { success: Envelope(Shelf), error: NoSuchShelf })
 *
 * Effect.fail(NoSuchShelf.make({ message: "There is no shelf 7" }))
 * ```
 */
import type { InputIssue } from "@device-cloud/core"
import { Effect, Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { Code, statusOf } from "./Code.ts"
import { snakeCase } from "./SnakeCase.ts"

/** Any failure, as it is in the body of a response. */
export interface Failure {
  readonly code: number
  /** A sentence that a developer can act on. */
  readonly message: string
  readonly data?: object
}

/**
 * Declares a failure. `identifier` names it in the OpenAPI description, and tells
 * its type from that of another failure with the same code. The first three
 * digits of `code` are the HTTP status. `data` are the fields of its `data`.
 *
 * An endpoint that has two failures with the same code, one of them with `data`,
 * lists that one first: the response carries what the first that fits declares.
 */
export const failure: {
  <const Identifier extends string, const C extends number>(
    identifier: Identifier,
    code: C,
    description: string
  ): Schema.brand<Schema.Struct<EnvelopeFields<C>>, Identifier>
  <const Identifier extends string, const C extends number, const Data extends Schema.Struct.Fields>(
    identifier: Identifier,
    code: C,
    description: string,
    data: Data
  ): Schema.brand<Schema.Struct<EnvelopeFields<C> & { readonly data: Schema.Struct<Data> }>, Identifier>
} = (identifier: string, code: number, description: string, data?: Schema.Struct.Fields): never =>
  Schema.Struct({
    code: Schema.Literal(code).pipe(Schema.withConstructorDefault(Effect.succeed(code))),
    message: Schema.String,
    ...data === undefined ? {} : { data: Schema.Struct(data) }
  }).pipe(Schema.brand(identifier as never))
    .annotate({ description, identifier })
    .pipe(HttpApiSchema.status(statusOf(code))) as never

type EnvelopeFields<C extends number> = {
  readonly code: Schema.withConstructorDefault<Schema.Literal<C>>
  readonly message: Schema.String
}

/** The fields of failures that carry issues: the path of each refused field, and what was expected of it. */
export const issuesData = {
  issues: Schema.Record(Schema.String, Schema.Array(Schema.String)).annotate({
    description: "Path of each refused field to what was expected of it"
  })
}

/** The fields of failures that pass with time. */
export const retryData = {
  retry_after: Schema.Int.annotate({ description: "Seconds after which it may succeed" })
}

/** The body is missing, is no JSON, or did not arrive whole. */
export const BodyUnreadable = failure("BodyUnreadable", Code.bodyUnreadable, "The body is missing or cannot be read")

/** A parameter, or a field of the body, does not fit; `data.issues` names each. */
export const InvalidParameter = failure(
  "InvalidParameter",
  Code.invalidParameter,
  "A parameter, or a field of the body, is invalid",
  issuesData
)

/** The body is larger than the route takes. */
export const TooLarge = failure("TooLarge", Code.tooLarge, "The body is too large")

/** The route takes no body of this media type. */
export const UnsupportedMediaType = failure(
  "UnsupportedMediaType",
  Code.mediaType,
  "The media type of the body is not supported"
)

/** A rate limit refuses the request; `data.retry_after` says for how long. */
export const TooManyRequests = failure(
  "TooManyRequests",
  Code.tooMany,
  "Too many requests; try again later",
  retryData
)

/** A defect; the log has its cause under `data.request_id`. */
export const InternalError = failure("InternalError", Code.internal, "Internal error", {
  request_id: Schema.String.annotate({ description: "Names this request in the log of the server" })
})

/** The storage cannot be reached, or does not respond in time. */
export const StorageUnreachable = failure(
  "StorageUnreachable",
  Code.storageUnreachable,
  "The storage cannot be reached; try again later"
)

/** The failure of a request with these issues, such as `{ path: ["network_type"], message: "Expected …" }`. */
export const invalidParameter = (issues: ReadonlyArray<InputIssue>): typeof InvalidParameter.Type =>
  InvalidParameter.make(withIssues(issues, snakeCase))

/**
 * The message and data of a failure with issues; the message repeats the first.
 * `nameOf` turns the name of a field of the domain into the name on the wire.
 */
export const withIssues = (issues: ReadonlyArray<InputIssue>, nameOf: (name: string) => string) => {
  const byPath = issuesByPath(issues, nameOf)
  const [[path, [message]] = ["", ["Invalid input"]]] = Object.entries(byPath)
  return { message: path === "" ? `${message}` : `${path}: ${message}`, data: { issues: byPath } }
}

/** For example `{"network_type": ["Expected …"]}`; the empty path is the whole input. */
const issuesByPath = (
  issues: ReadonlyArray<InputIssue>,
  nameOf: (name: string) => string
): Readonly<Record<string, ReadonlyArray<string>>> => {
  const byPath = new Map<string, Array<string>>()
  for (const { message, path } of issues) {
    const key = path.map((segment, i) =>
      typeof segment === "number" ? `[${segment}]` : i === 0 ? nameOf(segment) : `.${segment}`
    ).join("")
    byPath.set(key, [...byPath.get(key) ?? [], message])
  }
  return Object.fromEntries(byPath)
}
