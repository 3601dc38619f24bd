/**
 * Failures of the routes of scenes.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"

export const NoSuchScene = failure("NoSuchScene", Code.noSuchScene, "The project has no such scene")

export const SceneNameTaken = failure("SceneNameTaken", Code.taken, "The project has another scene of this name")

export const TooManyExecutions = failure(
  "TooManyExecutions",
  Code.tooMany,
  "Too many executions of the project wait",
  retryData
)

/** Seconds after which executions may have been carried out. */
const retryAfter = 10

/** From the errors of the domain. */
export const sceneFailures = {
  SceneNotFound: ({ message }: Core.SceneNotFound) => NoSuchScene.make({ message }),
  SceneNameTaken: ({ name }: Core.SceneNameTaken) =>
    SceneNameTaken.make({ message: `name: the project has another scene called ${name}` }),
  TooManyExecutions: ({ message }: Core.TooManyExecutions) =>
    TooManyExecutions.make({
      message,
      data: { retry_after: retryAfter }
    })
}
