/**
 * Reads of many rows take turns within their project, so that one project cannot
 * take the storage from the others.
 */
import type { ProjectId } from "@device-cloud/core"
import { Effect, Fiber, Layer, Semaphore } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { TooManyRequests } from "../Failure.ts"
import { CurrentPrincipal } from "./Authorization.ts"

/** How many reads of many rows a project may have on this server. A read lasts until its response is written. */
export interface ExpensiveReadLimits {
  /** That run at once. Default: 2. */
  readonly atOnce?: number | undefined
  /** That wait for their turn. Default 32. */
  readonly waiting?: number | undefined
}

/** For an endpoint that reads many rows: a list, a history, an export. */
export class ExpensiveRead extends HttpApiMiddleware.Service<ExpensiveRead, { requires: CurrentPrincipal }>()(
  "@device-cloud/http/ExpensiveRead",
  { error: TooManyRequests }
) {
  static readonly layer = (limits: ExpensiveReadLimits): Layer.Layer<ExpensiveRead> =>
    Layer.sync(ExpensiveRead, () => {
      const takeTurn = makeTurns(limits)
      return ExpensiveRead.of((handler) =>
        Effect.andThen(Effect.flatMap(CurrentPrincipal, ({ projectId }) => takeTurn(projectId)), inNewFiber(handler))
      )
    })
}

/** Seconds after which there may be room. */
const retryAfter = 1

/** How long a read waits for its turn: less than a request may take. An export may hold a turn for long. */
const longestWait = "10 seconds"

interface Turns {
  readonly semaphore: Semaphore.Semaphore
  /** That run or wait. */
  count: number
}

const makeTurns = ({ atOnce = 2, waiting = 32 }: ExpensiveReadLimits) => {
  const projects = new Map<ProjectId, Turns>()

  const enter = (projectId: ProjectId): Effect.Effect<Turns, typeof TooManyRequests.Type> =>
    Effect.suspend(() => {
      const turns = projects.get(projectId) ?? { semaphore: Semaphore.makeUnsafe(atOnce), count: 0 }
      if (turns.count >= atOnce + waiting) return Effect.fail(tooMany)
      turns.count++
      projects.set(projectId, turns)
      return Effect.succeed(turns)
    })

  const leave = (projectId: ProjectId, turns: Turns) =>
    Effect.sync(() => {
      if (--turns.count === 0) projects.delete(projectId)
    })

  /** The turn ends with the scope: that of a request is open until a stream in its response has ended. */
  return Effect.fnUntraced(function*(projectId: ProjectId) {
    const { semaphore } = yield* Effect.acquireRelease(enter(projectId), (turns) => leave(projectId, turns))
    const turn = Effect.acquireRelease(semaphore.take(1), () => semaphore.release(1), { interruptible: true })
    yield* Effect.timeoutOrElse(turn, { duration: longestWait, orElse: () => Effect.fail(tooMany) })
  })
}

/**
 * A fiber that has waited is old. When its stack grows, the memory where the stack was before is old, too, and keeps what
 * stood there until the next full collection: here, the rows of a list (docs/decisions/0137-what-waiting-requests-keep.md).
 */
const inNewFiber = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(Effect.forkChild(effect), Fiber.join, Fiber.interrupt)

const tooMany = TooManyRequests.make({
  message: "The project reads too many lists at once; try again later",
  data: { retry_after: retryAfter }
})
