/**
 * Streams of responses that end with the access key of their request.
 */
import { Deferred, Effect, type Fiber, type Scope, Stream } from "effect"

/**
 * The stream ends with `end`, as `Stream.interruptWhen` has it. If the client does
 * not read then, nothing pulls the stream: who writes it is interrupted, which cuts
 * the connection.
 */
export const endingWith = <A, E, R, E2>(
  stream: Stream.Stream<A, E, R>,
  end: Effect.Effect<void, E2>
): Effect.Effect<Stream.Stream<A, E | E2, R>, never, Scope.Scope> =>
  Effect.gen(function*() {
    /** Has pulled, and writes what it got: in a response of `fetch`, not the fiber of the request. */
    let writer: Fiber.Fiber<unknown, unknown> | undefined
    const isOver = yield* Deferred.make<void, E2>()
    yield* Effect.forkScoped(Effect.map(Effect.exit(end), (exit) => {
      writer?.interruptUnsafe()
      Deferred.doneUnsafe(isOver, exit)
    }))
    return Stream.transformPull(Stream.interruptWhen(stream, Deferred.await(isOver)), (pull) =>
      Effect.succeed(Effect.withFiber((fiber) => {
        writer = undefined
        return Effect.tap(pull, () =>
          Effect.sync(() => {
            writer = fiber
          }))
      })))
  })
