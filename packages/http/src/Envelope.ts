/**
 * How the API answers when all went well (specification, Conventions; decisions,
 * section 3).
 */
import { PageNumber, PageSize } from "@device-cloud/core"
import type { Page, PageRequest } from "@device-cloud/core"
import { Effect, Schema } from "effect"
import { type DomainError, type Failure, failWith } from "./Failure.ts"

const success = {
  code: Schema.Literal(0).annotate({ description: "0: success" }),
  message: Schema.String
}

/** The answer of an operation that says nothing more than that it was done. */
export const EnvelopeOnly = Schema.Struct(success)

export const Envelope = <S extends Schema.Top>(data: S) => Schema.Struct({ ...success, data })

/** A page of a list, newest first. */
export const Paged = <S extends Schema.Top>(item: S) =>
  Envelope(Schema.Struct({
    results: Schema.Array(item),
    total: Schema.Int.annotate({ description: "Items in the whole list" }),
    page: Schema.Int,
    page_size: Schema.Int,
    pages: Schema.Int.annotate({ description: "Pages in the whole list" })
  }))

/** The query parameters of a paged list. */
export const pageQuery = {
  page: Schema.optional(PageNumber.annotate({ description: "From 1; default 1" })),
  page_size: Schema.optional(PageSize.annotate({ description: "1 to 100; default 10" }))
}

export const pageRequest = (query: {
  readonly page?: number | undefined
  readonly page_size?: number | undefined
}): PageRequest => ({ page: query.page ?? 1, pageSize: query.page_size ?? 10 })

const ok = { code: 0, message: "success" } as const

/** Answers an operation whose result does not matter. */
export const done = <A, E extends DomainError, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<typeof ok, Failure, R> => effect.pipe(Effect.as(ok), Effect.catch(failWith))

/** Answers an operation with its result. */
export const respond = <A, E extends DomainError, R, Data>(
  effect: Effect.Effect<A, E, R>,
  toData: (result: A) => Data
): Effect.Effect<typeof ok & { readonly data: Data }, Failure, R> =>
  effect.pipe(
    Effect.map((result) => ({ code: ok.code, message: ok.message, data: toData(result) })),
    Effect.catch(failWith)
  )

/** Answers with a page of a list. */
export const respondPage = <A, E extends DomainError, R, Item>(
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

/** A date as the specification writes it: RFC 3339 with offset, empty when it is unset. */
export const DateText = Schema.String.annotate({ format: "date-time", description: "RFC 3339; empty: unset" })

/** From Unix milliseconds. */
export const dateText = (millis: number | null): string => millis === null ? "" : new Date(millis).toISOString()
