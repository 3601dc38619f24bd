/**
 * Failures of the routes of thing models, and of values that do not fit one.
 */
import type * as Core from "@device-cloud/core"
import { identity } from "effect"
import { Code } from "../Code.ts"
import { failure, issuesData, withIssues } from "../Failure.ts"

export const InvalidThingModel = failure(
  "InvalidThingModel",
  Code.invalidThingModel,
  "The thing model, or a part of it, is invalid",
  issuesData
)

export const InvalidValue = failure(
  "InvalidValue",
  Code.invalidValue,
  "A value does not fit the thing model of the product",
  issuesData
)

export const NoSuchElement = failure(
  "NoSuchElement",
  Code.noSuchElement,
  "The thing model has no such property, event or service"
)

/** From the errors of the domain. Names in documents of the caller stay as they are. */
export const thingModelFailures = {
  InvalidThingModel: ({ issues }: Core.InvalidThingModel) => InvalidThingModel.make(withIssues(issues, identity)),
  InvalidValues: ({ issues }: Core.InvalidValues) => InvalidValue.make(withIssues(issues, identity)),
  ElementNotFound: ({ message }: Core.ElementNotFound) => NoSuchElement.make({ message })
}
