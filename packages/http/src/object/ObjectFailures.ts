/**
 * Failures of the routes of objects.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchObject = failure("NoSuchObject", Code.noSuchObject, "There is no such object")

export const ObjectInUse = failure("ObjectInUse", Code.stateForbids, "An unfinished task needs the object")

export const FileTooLarge = failure("FileTooLarge", Code.tooLarge, "The file is too large")

export const RangeUnsatisfiable = failure(
  "RangeUnsatisfiable",
  Code.rangeUnsatisfiable,
  "The range begins after the end of the object"
)

/** From the errors of the domain. */
export const objectFailures = {
  ObjectNotFound: ({ message }: Core.ObjectNotFound) => NoSuchObject.make({ message }),
  ObjectInUse: ({ message }: Core.ObjectInUse) => ObjectInUse.make({ message }),
  ObjectTooLarge: ({ message }: Core.ObjectTooLarge) => FileTooLarge.make({ message })
}
