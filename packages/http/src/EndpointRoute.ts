/**
 * Handles the requests of an endpoint with plain functions: a request of the API
 * takes an eighth less time than through `HttpApiBuilder`, which runs a generator for
 * each request, copies its context and wraps each middleware
 * (docs/decisions/0122-what-a-request-costs.md). Endpoints that take anything but JSON stay
 * with `HttpApiBuilder`.
 */
import { Context, Effect, Schema, SchemaAST, SchemaIssue } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, type HttpApiEndpoint, HttpApiError, type HttpApiGroup, type HttpApiMiddleware } from "effect/http-api"
import type { Failure } from "./Failure.ts"
import { Authorization } from "./middleware/Authorization.ts"
import * as ErrorEnvelope from "./middleware/ErrorEnvelope.ts"

type Response = HttpServerResponse.HttpServerResponse
type Handled = Effect.Effect<Response, unknown, unknown>

/** An endpoint with its handler, as `HttpApiBuilder` keeps it. */
export interface Handler {
  readonly endpoint: HttpApiEndpoint.Top
  readonly isRaw: boolean
  readonly handler: (request: object) => Effect.Effect<unknown, unknown, unknown>
}

/** Where an endpoint stands. */
export interface Place {
  readonly api: { readonly annotations: Context.Context<never> }
  readonly group: HttpApiGroup.Top
  /** The middlewares that its endpoints have. */
  readonly middlewares: Context.Context<never>
}

/**
 * Whether an endpoint takes JSON, if anything, and responds with JSON of one schema, or makes its response itself. If it
 * may respond with a text, too, its handler makes that response.
 */
export const isPlain = ({ endpoint: { headers, payload, success }, isRaw }: Handler): boolean =>
  headers === undefined &&
  (isRaw ||
    [...payload.values()].every(({ encoding }) => encoding._tag === "Json") &&
      [...success].every((schema) => isJson(schema) || isText(schema)) &&
      [...success].filter(isJson).length <= 1)

const isJson = ({ ast }: Schema.Top): boolean => SchemaAST.isObjects(ast)

const isText = ({ ast }: Schema.Top): boolean => SchemaAST.isString(ast)

/** Makes what handles the requests of a plain endpoint. */
export const make = (place: Place, handler: Handler): Handled => {
  const { api, group, middlewares } = place
  const { endpoint } = handler
  const annotations = Context.merge(Context.merge(api.annotations, group.annotations), endpoint.annotations)
  const options = Context.getOrUndefined(annotations, HttpApi.ParseOptions)
  const keys = [...endpoint.middlewares] as unknown as ReadonlyArray<HttpApiMiddleware.AnyService>
  const handled = keys.reduce(
    (inner, key) => within(key, middlewares, inner, { endpoint, group }),
    run(handler, group, options)
  )
  const failures = Schema.toCodecJson(Schema.Union([...endpoint.error, ...keys.flatMap(({ error }) => [...error])]))
  const encode = Schema.encodeUnknownEffect(failures, options)
  return handled.pipe(
    Effect.withErrorReporting,
    Effect.catch((error) =>
      HttpApiError.HttpApiSchemaError.is(error)
        ? Effect.die(error)
        : Effect.matchEffect(encode(error), {
          onSuccess: (failure) => Effect.succeed(ErrorEnvelope.toResponse(failure as unknown as Failure)),
          onFailure: Effect.die
        })
    )
  )
}

type Middleware = (handler: Handled, options: object) => Handled

/** Applies a middleware. That which checks the access key reads it from the request itself. */
const within = (
  key: HttpApiMiddleware.AnyService,
  middlewares: Context.Context<never>,
  inner: Handled,
  options: object
): Handled => {
  const middleware: unknown = Context.getUnsafe(middlewares, key)
  return key.key === Authorization.key
    ? (middleware as { readonly accessKey: Middleware }).accessKey(inner, options)
    : (middleware as Middleware)(inner, options)
}

/** Reads a request, runs the handler, and writes the response. */
const run = (
  { endpoint, handler, isRaw }: Handler,
  group: HttpApiGroup.Top,
  options: SchemaAST.ParseOptions | undefined
): Handled => {
  const params = decoderOf(endpoint.params, options)
  const query = decoderOf(
    endpoint.query === undefined ? undefined : Schema.toCodecArrayFromSingle(endpoint.query),
    options
  )
  const payload = isRaw || endpoint.payload.size === 0 ? undefined : payloadReader(endpoint.payload, options)
  const encode = Schema.encodeUnknownEffect(Schema.Union([...endpoint.success].filter(isJson)), options)
  const write = (result: unknown): Handled =>
    HttpServerResponse.isHttpServerResponse(result)
      ? Effect.succeed(result)
      : Effect.flatMapEager(wrap("Body", encode(result)), toResponse)
  return Effect.withFiber(({ context }) => {
    const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
    const handle = (read: object): Handled => Effect.flatMap(handler({ request, endpoint, group, ...read }), write)
    return Effect.flatMapEager(
      wrap("Params", params(Context.getUnsafe(context, HttpRouter.RouteContext).params)),
      (params) =>
        Effect.flatMapEager(
          wrap("Query", query(Context.getUnsafe(context, HttpServerRequest.ParsedSearchParams))),
          (query) => {
            if (payload === undefined) return handle({ params, query })
            const reading = payload(request)
            return reading === undefined
              ? Effect.succeed(unsupported)
              : Effect.flatMap(wrap("Payload", reading), (payload) => handle({ params, query, payload }))
          }
        )
    )
  })
}

type Decoder<A> = (input: A) => Effect.Effect<unknown, Schema.SchemaError, unknown>

const { wrap } = HttpApiError.HttpApiSchemaError

/** Without a schema, nothing is decoded. */
const decoderOf = (schema: Schema.Top | undefined, options: SchemaAST.ParseOptions | undefined): Decoder<unknown> =>
  schema === undefined ? () => Effect.undefined : Schema.decodeUnknownEffect(schema, options)

/** The status tells the rest; the envelope comes later. */
const unsupported = HttpServerResponse.empty({ status: 415 })

/** Makes a function that reads the body; undefined: the endpoint does not take its media type. */
const payloadReader = (
  payload: HttpApiEndpoint.PayloadMap,
  options: SchemaAST.ParseOptions | undefined
) => {
  const decoders = new Map([...payload].map(([mediaType, { schemas }]) => {
    const mayBeNull = schemas.some(({ ast }) => SchemaAST.isNull(SchemaAST.toEncoded(ast)))
    const decode: Decoder<unknown> = Schema.decodeUnknownEffect(Schema.Union(schemas), options)
    return [mediaType, (text: string) => {
      if (text === "") return decode(mayBeNull ? null : undefined)
      return Effect.flatMapEager(parseJson(text), decode)
    }]
  }))
  return (
    request: HttpServerRequest.HttpServerRequest
  ): Effect.Effect<unknown, Schema.SchemaError, unknown> | undefined => {
    const decode = decoders.get(mediaTypeOf(request))
    return decode === undefined ? undefined : Effect.flatMap(Effect.orDie(request.text), decode)
  }
}

const mediaTypeOf = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
  const sent = headers["content-type"]
  return sent === undefined || sent === "application/json"
    ? "application/json"
    : sent.split(";", 1)[0]!.trim().toLowerCase()
}

const parseJson = (text: string): Effect.Effect<unknown, Schema.SchemaError> => {
  try {
    return Effect.succeed(JSON.parse(text))
  } catch {
    return Effect.fail(new Schema.SchemaError(new SchemaIssue.InvalidValue({ message: "Expected a valid JSON body" })))
  }
}

const toResponse = (body: unknown): Effect.Effect<Response> => Effect.succeed(HttpServerResponse.jsonUnsafe(body))
