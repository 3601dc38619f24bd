/**
 * Bounds the reads of subscriptions that wait or stream.
 */
import type { ProjectId } from "@device-cloud/core"
import { Effect, type Scope } from "effect"
import { TooManyRequests } from "../Failure.ts"

/** Reads of a project on this server, at most. */
const maxOfProject = 100
/** Reads of all projects on this server, at most. */
const maxTotal = 1000

/** Seconds after which there may be room for another one. */
const retryAfter = 5

/** Opens a read, which is open until the scope closes. */
export type OpenReads = (projectId: ProjectId) => Effect.Effect<void, typeof TooManyRequests.Type, Scope.Scope>

export const make = (): OpenReads => {
  const ofProjects = new Map<ProjectId, number>()
  let total = 0

  const tooMany = (message: string) => Effect.fail(TooManyRequests.make({ message, data: { retry_after: retryAfter } }))

  const enter = (projectId: ProjectId) =>
    Effect.suspend(() => {
      const count = ofProjects.get(projectId) ?? 0
      if (count >= maxOfProject) return tooMany(`The project reads ${maxOfProject} subscriptions at once already`)
      if (total >= maxTotal) return tooMany("The server has as many readers of subscriptions as it may have")
      total++
      ofProjects.set(projectId, count + 1)
      return Effect.void
    })

  const leave = (projectId: ProjectId) =>
    Effect.sync(() => {
      total--
      const count = ofProjects.get(projectId)! - 1
      if (count === 0) ofProjects.delete(projectId)
      else ofProjects.set(projectId, count)
    })

  return (projectId) => Effect.acquireRelease(enter(projectId), () => leave(projectId))
}
