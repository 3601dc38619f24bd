/**
 * Streams of responses that end with the access key of their request.
 */
import { Deferred, Effect, type Scope, Stream } from "effect"

/**
 * The stream ends with `end`, as `Stream.interruptWhen` has it. If the client does
 * not read then, nothing pulls the stream: its connection is cut.
 */
export const endingWith = <A, E, R, E2>(
  stream: Stream.Stream<A, E, R>,
  end: Effect.Effect<void, E2>
): Effect.Effect<Stream.Stream<A, E | E2, R>, never, Scope.Scope> =>
  Effect.withFiber((fiber) =>
    Effect.gen(function*() {
      let isReading = true
      const isOver = yield* Deferred.make<void, E2>()
      yield* Effect.forkScoped(Effect.map(Effect.exit(end), (exit) => {
        if (isReading) Deferred.doneUnsafe(isOver, exit)
        else fiber.interruptUnsafe()
      }))
      return Stream.transformPull(Stream.interruptWhen(stream, Deferred.await(isOver)), (pull) => {
        const pulled = Effect.tap(pull, () =>
          Effect.sync(() => {
            isReading = false
          }))
        return Effect.succeed(Effect.suspend(() => {
          isReading = true
          return pulled
        }))
      })
    })
  )
