/**
 * Paged lists: newest first, stable under concurrent inserts of the same
 * instant (`createdAt` descending, then `id` descending).
 */
import { Schema } from "effect"

/** Page number, from 1. */
export const PageNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))

/** Items on a page, 1 to 100. */
export const PageSize = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))

export interface PageRequest {
  readonly page: number
  readonly pageSize: number
}

export interface Page<A> {
  readonly items: ReadonlyArray<A>
  /** How many items the whole list holds. */
  readonly total: number
}
