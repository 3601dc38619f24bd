/**
 * Paged lists. The order is newest first: `createdAt` descending, then `id`
 * descending, so that items of the same instant keep their places. Devices are in
 * the order of their `id` alone.
 */
import { Schema } from "effect"

/** Page number, from 1. */
export const PageNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))

/** Items on a page, 1 to 100. */
export const PageSize = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))

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
