/**
 * Paged lists. The order is newest first: `createdAt` descending, then `id`
 * descending, so that items of the same instant keep their places. Devices are in
 * the order of their `id` alone.
 */
import { Effect, Schema } from "effect"
import { decodeInput, type InvalidInput } from "./InvalidInput.ts"

/** Page number, from 1. */
export const PageNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))

/** Items on a page, 1 to 100. */
export const PageSize = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))

/** Lists of services fail with `InvalidInput` for a page that is out of these bounds. */
export interface PageRequest {
  /** From 1. */
  readonly page: number
  /** Items on a page, 1 to 100. */
  readonly pageSize: number
}

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  /**
   * How many items the whole list holds. Of a long list a store may count only a part, and at least
   * what stands up to the end of this page; it then says one more.
   */
  readonly total: number
}

const decodePage: (page: PageRequest) => Effect.Effect<PageRequest, InvalidInput> = decodeInput(
  Schema.Struct({ page: PageNumber, pageSize: PageSize })
)

/** Makes a list refuse a page that is out of bounds: storages differ in what they make of it. */
export const paged = <Args extends ReadonlyArray<unknown>, A, E, R>(
  list: (...args: [...Args, PageRequest]) => Effect.Effect<Page<A>, E, R>
) =>
(...args: [...Args, PageRequest]): Effect.Effect<Page<A>, E | InvalidInput, R> =>
  Effect.flatMap(decodePage(args.at(-1) as PageRequest), () => list(...args))
