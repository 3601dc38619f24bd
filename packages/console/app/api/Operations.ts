/**
 * The types of the API's operations as they are in JSON: the console sends and
 * reads them as they are, without the schemas.
 */
import type { Api } from "@device-cloud/http"
import type { Schema } from "effect"
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"

/** The groups of the API with their operations. */
export type Operations = {
  readonly [Group in GroupOf<typeof Api> as Group["identifier"]]: {
    readonly [Endpoint in HttpApiGroup.Endpoints<Group> as Endpoint["identifier"]]: Operation<Endpoint>
  }
}

/** An operation. Its promise has the `data` of the response, or rejects with `ApiError`. */
export type Operation<Endpoint extends HttpApiEndpoint.ConstraintRequest> = (
  ...args: {} extends RequestOf<Endpoint> ? [request?: RequestOf<Endpoint>] : [request: RequestOf<Endpoint>]
) => Promise<DataOf<Json<Endpoint["~Success"]>>>

/** What an operation responds. */
export type Data<Op extends (...args: never) => unknown> = Awaited<ReturnType<Op>>

/** An item of what a paged operation responds. */
export type Item<Op extends (...args: never) => unknown> = Data<Op> extends
  { readonly results: ReadonlyArray<infer Result> } ? Result : never

/** The body that an operation takes. */
export type Body<Op extends (...args: never) => unknown> = NonNullable<Parameters<Op>[0]> extends
  { readonly payload: infer Payload } ? Payload : never

type GroupOf<A> = A extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never

type RequestOf<Endpoint extends HttpApiEndpoint.ConstraintRequest> =
  & Part<"params", Json<Endpoint["~Params"]>>
  & Part<"query", AsGiven<Json<Endpoint["~Query"]>>>
  & Part<"payload", Json<Endpoint["~Payload"]>>
  & {
    readonly headers?: Readonly<Record<string, string>>
    readonly signal?: AbortSignal
    readonly isUndone?: boolean
  }

/** What a schema has in JSON. An endpoint keeps the codec that is made of it. */
type Json<S> = S extends Schema.toCodecJson<infer Source> ? Source["Encoded"]
  : S extends Schema.toCodecStringTree<infer Source> ? Source["Encoded"]
  : S extends Schema.Constraint ? S["Encoded"]
  : never

/** A part that may be empty, or left out, is optional. */
type Part<Name extends string, Value> = [Value] extends [never] ? {}
  : {} extends Value ? { readonly [_ in Name]?: Value | undefined }
  : null extends Value ? { readonly [_ in Name]?: Value | undefined }
  : { readonly [_ in Name]: Value }

/** Queries are text in the address: numbers and booleans may be given as they are. */
type AsGiven<Query> = {
  readonly [Name in keyof Query]: Query[Name] | (string extends Query[Name] ? number | boolean : never)
}

type DataOf<Response> = Response extends { readonly data: infer Value } ? Value
  : Response extends string ? string
  : void
