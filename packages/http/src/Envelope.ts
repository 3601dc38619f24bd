/**
 * The envelope of a success, and how a handler responds with one. Failures have
 * the same envelope (Failure.ts, docs/api/errors.md).
 */
import { PageNumber, PageSize } from "@device-cloud/core"
import type { Page, PageRequest } from "@device-cloud/core"
import { Effect, Schema } from "effect"
import { type DomainError, type FailureOf, failWith } from "./DomainFailures.ts"
import type { Failure } from "./Failure.ts"

const success = {
  code: Schema.Literal(0).annotate({ description: "0: success" }),
  message: Schema.String
}

/** The body of a success without data. */
export const EnvelopeOnly = Schema.Struct(success)

/** The body of a success with data. */
export const Envelope = <S extends Schema.Top>(data: S) => Schema.Struct({ ...success, data })

/** The body of a page of a list, newest first. */
export const Paged = <S extends Schema.Top>(item: S) =>
  Envelope(Schema.Struct({
    results: Schema.Array(item),
    total: Schema.Int.annotate({
      description: "Items in the whole list; of one that is counted in part, at least so many"
    }),
    page: Schema.Int,
    page_size: Schema.Int,
    pages: Schema.Int.annotate({ description: "Pages in the whole list" })
  }))

/** The query parameters of a paged list. */
export const pageQuery = {
  page: Schema.optional(PageNumber.annotate({ description: "From 1; default 1" })),
  page_size: Schema.optional(PageSize.annotate({ description: "1 to 100; default 10" }))
}

/** The page that a query asks for. */
export const pageRequest = (query: {
  readonly page?: number | undefined
  readonly page_size?: number | undefined
}): PageRequest => ({ page: query.page ?? 1, pageSize: query.page_size ?? 10 })

/** Runs an operation and responds without data. Errors of the domain become failures of the API. */
export const done = <A, E extends DomainError | Failure, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<typeof ok, FailureOf<E>, R> => effect.pipe(Effect.as(ok), Effect.catch(failWith<E>))

/** Runs an operation and responds with its result. Errors of the domain become failures of the API. */
export const respond = <A, E extends DomainError | Failure, R, Data>(
  effect: Effect.Effect<A, E, R>,
  toData: (result: A) => Data
): Effect.Effect<typeof ok & { readonly data: Data }, FailureOf<E>, R> =>
  effect.pipe(
    Effect.map((result) => ({ code: ok.code, message: ok.message, data: toData(result) })),
    Effect.catch(failWith<E>)
  )

/** Reads the page of a list that a query asks for, and responds with it. */
export const respondPage = <A, E extends DomainError | Failure, R, Item>(
  query: Parameters<typeof pageRequest>[0],
  list: (page: PageRequest) => Effect.Effect<Page<A>, E, R>,
  toItem: (item: A) => Item
) => {
  const request = pageRequest(query)
  return respond(list(request), ({ items, total }) => ({
    results: items.map(toItem),
    total,
    page: request.page,
    page_size: request.pageSize,
    pages: Math.ceil(total / request.pageSize)
  }))
}

/** A date on the wire: RFC 3339 with an offset, empty when it is unset. */
export const DateText = Schema.String.annotate({ format: "date-time", description: "RFC 3339; empty: unset" })

/** The text of a date in Unix milliseconds; null: unset. */
export const dateText = (millis: number | null): string => millis === null ? "" : new Date(millis).toISOString()

const ok = { code: 0, message: "success" } as const
