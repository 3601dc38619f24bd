/**
 * Whether the scopes of an access key admit a request (docs/api/projects.md).
 *
 * What is not known to belong to one product is refused to a key that is limited
 * to products: a new route is closed to it until a rule below opens it.
 */
import { DeviceId, Devices, type Principal } from "@device-cloud/core"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { failWith } from "../DomainFailures.ts"
import { RoleTooLow } from "../project/ProjectFailures.ts"

/** A route, as its definition names it. */
export interface ScopedRoute {
  /** The group of the API. */
  readonly area: string
  /** Whether it changes nothing. */
  readonly isRead: boolean
  /** With the names of its parameters, such as `/openapi/v1/things/:device_id/detail`. */
  readonly path: string
}

/** Routes that any key may call: they are about its own sessions. */
const ofSessions = /^\/openapi\/v1\/browser-sessions(?:\/|$)/

/** Whether a path counts for the scopes of a key. */
export const isScoped = (path: string): boolean => !ofSessions.test(path)

/** Routes of groups that stand below a product or a device and show or change others. */
const closedAreas = new Set(["topology"])

/** Routes that stand below a product. */
const belowProduct = /^\/openapi\/v1\/(?:products|oss\/ota|auth\/ble\/products)\/:product_key(?:\/|$)/
/** Routes that stand below a device. */
const belowDevice = /^\/openapi\/v1\/things\/:device_id(?:\/|$)/
/** Lists that a product narrows; the key must name one of its products. */
const narrowedByQuery = /^\/openapi\/v1\/(?:things|events|ota\/firmwares)$/
/** Routes that take devices of other products for unknown. */
const narrowsItself = /^\/openapi\/v1\/history\/query$/
/** Parameters of queries that name products, on all routes. */
const productParameters = ["product_key", "source_product_key"]

const refuse = (message: string) => Effect.fail(RoleTooLow.make({ message }))

const outside = "The access key is limited to other products (scopes.products)"

/** Makes a check that fails when the scopes of the key do not admit the request. */
export const make = Effect.gen(function*() {
  const devices = yield* Devices

  /** Fails unless all that the request touches belongs to one of the products. */
  const checkProducts = Effect.fnUntraced(function*(
    { projectId }: Principal,
    products: ReadonlyArray<string>,
    { area, path }: ScopedRoute
  ) {
    const { params } = yield* HttpRouter.RouteContext
    // What the route reads, not the URL: whoever splits that again may find another query.
    const query = yield* HttpServerRequest.ParsedSearchParams
    const named = productParameters.flatMap((name) => query[name] ?? [])
    if (!named.every((product) => products.includes(product))) return yield* refuse(outside)
    if (closedAreas.has(area)) return yield* refuse("An access key that is limited to products may not call this")
    if (belowProduct.test(path)) {
      return products.includes(params["product_key"] ?? "") ? undefined : yield* refuse(outside)
    }
    if (belowDevice.test(path)) {
      const deviceId = DeviceId.make(params["device_id"] ?? "")
      const found = yield* devices.get(projectId, { deviceId }).pipe(
        Effect.map(({ device }): string => device.productKey),
        // Whether a device exists is not for this key to know.
        Effect.catchTag("DeviceNotFound", () => Effect.succeed("")),
        Effect.catch(failWith)
      )
      return products.includes(found) ? undefined : yield* refuse(outside)
    }
    if (narrowsItself.test(path)) return undefined
    if (narrowedByQuery.test(path)) {
      return named.length > 0
        ? undefined
        : yield* refuse("product_key: the access key is limited to products; name one of them in the query")
    }
    return yield* refuse("An access key that is limited to products may not call this")
  })

  return (principal: Principal, route: ScopedRoute) => {
    if (!isScoped(route.path)) return Effect.void
    const { actions, products } = principal.scopes
    const action = `${route.area}:${route.isRead ? "read" : "write"}`
    if (actions !== undefined && !actions.includes(action)) {
      return refuse(`This needs ${action}, which the scopes of the access key do not have`)
    }
    return products === undefined ? Effect.void : checkProducts(principal, products, route)
  }
})
