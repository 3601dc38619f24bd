/**
 * Failures of the routes of products.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchProduct = failure("NoSuchProduct", Code.noSuchProduct, "The project has no such product")

export const ProductHasDevices = failure("ProductHasDevices", Code.productHasDevices, "The product still has devices")

/** From the errors of the domain. */
export const productFailures = {
  ProductNotFound: ({ message }: Core.ProductNotFound) => NoSuchProduct.make({ message }),
  ProductHasDevices: ({ message }: Core.ProductHasDevices) => ProductHasDevices.make({ message })
}
