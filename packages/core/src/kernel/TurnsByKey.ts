/**
 * Turns of those who would wait for each other in the storage, each with one of the connections that all share.
 */
import { Effect, PartitionedSemaphore, RcMap, Scope } from "effect"

/** Runs an effect when its turn comes; those of a key come in the order of the calls. */
export type InTurn<K> = (key: K) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Lets at most `atOnce` effects of a key run at once. */
export const make = <K>(atOnce: number): Effect.Effect<InTurn<K>, never, Scope.Scope> =>
  Effect.map(
    // In Effect 4.0.6, who comes overtakes those who wait for a `Semaphore`.
    RcMap.make({
      lookup: (key: K) =>
        Effect.map(PartitionedSemaphore.make<K>({ permits: atOnce }), (semaphore) => semaphore.withPermit(key))
    }),
    (turns) => (key) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        Scope.make(),
        (scope) => Effect.flatMap(Scope.provide(RcMap.get(turns, key), scope), (inTurn) => inTurn(effect)),
        Scope.close
      )
  )
