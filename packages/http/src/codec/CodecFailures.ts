/**
 * Failures of the routes of codecs.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, issuesData } from "../Failure.ts"

export const ProductNotRaw = failure("ProductNotRaw", Code.operationUnfit, "The data format of the product is not raw")

export const CodecMisfit = failure(
  "CodecMisfit",
  Code.invalidValue,
  "Bytes, or a message, do not fit the codec of the product",
  issuesData
)

/** From the errors of the domain. Names in documents of the caller stay as they are. */
export const codecFailures = {
  ProductNotRaw: ({ message }: Core.ProductNotRaw) => ProductNotRaw.make({ message }),
  CodecMisfit: ({ expected, message, path }: Core.CodecMisfit) =>
    CodecMisfit.make({ message, data: { issues: { [path]: [expected] } } })
}
