/**
 * What a store returns in pages, each after the last item of the one before: it costs
 * the same however far one has read, and what goes meanwhile moves nothing.
 */
import { Effect, Option, Stream } from "effect"

/**
 * Reads pages of `limit` items, as long as they are full. Each page is a chunk of the stream; it is read when the one
 * before has been taken.
 */
export const stream = <A, Key, E, R>(
  limit: number,
  keyOf: (item: A) => Key,
  read: (page: { readonly after: Key | undefined; readonly limit: number }) => Effect.Effect<ReadonlyArray<A>, E, R>
): Stream.Stream<A, E, R> =>
  Stream.paginate(undefined as Key | undefined, (after) =>
    Effect.map(read({ after, limit }), (page) =>
      [
        page,
        page.length < limit ? Option.none() : Option.some(keyOf(page.at(-1)!))
      ] as const))
