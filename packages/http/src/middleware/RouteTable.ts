/**
 * All routes that the server has, to tell a path that does not exist from a
 * method that the path does not take.
 */
import { FindMyWay, type HttpMethod } from "effect/http"
import { HttpApi, type HttpApiGroup } from "effect/http-api"

/** A method and a path as it is declared, such as `/things/:device_id`. */
export interface Route {
  readonly method: HttpMethod.HttpMethod
  readonly path: string
}

/** The routes, by path. */
export interface RouteTable {
  /** The methods of the routes that fit a URL. */
  readonly methodsOf: (url: string) => ReadonlyArray<string>
  /** The path of the route that fits a request, as it is declared; undefined: there is none. */
  readonly routeOf: (request: { readonly method: string; readonly url: string }) => string | undefined
  /** Whether a request fits a route only because a parameter of its path is empty, as in `/things//detail`. */
  readonly hasEmptyParameter: (request: { readonly method: string; readonly url: string }) => boolean
}

/**
 * Parameters may be as long as a request line: the schema of an identifier says
 * when one is too long. One path has one spelling, so that what looks at paths
 * (limits, scopes, proxies) sees the same route as the router.
 */
export const routerConfig = { maxParamLength: 16_384, caseSensitive: true, ignoreDuplicateSlashes: false }

/** Makes a table of routes. */
export const make = (routes: ReadonlyArray<Route>): RouteTable => {
  const table = FindMyWay.make<string>(routerConfig)
  /** Paths without parameters, by method: the search takes five times as long. */
  const literal = new Map(routes.map(({ method }) => [method as string, new Set<string>()]))
  for (const { method, path } of routes) {
    if (!/[:*]/.test(path)) literal.get(method)!.add(path)
    table.on(method === "GET" ? ["GET", "HEAD"] : method, path as `/${string}`, path)
  }
  const methods = [...new Set(["HEAD", ...routes.map(({ method }) => method)])]
  const isEmpty = (found: ReturnType<typeof table.find>): boolean =>
    found !== undefined && !found.handler.endsWith("*") && Object.values(found.params).includes("")
  const find = (method: string, url: string) => {
    const found = table.find(method, pathOf(url))
    return isEmpty(found) ? undefined : found
  }
  return {
    methodsOf: (url) => methods.filter((method) => find(method, url) !== undefined),
    routeOf: ({ method, url }) => {
      const path = pathOf(url)
      return literal.get(method)?.has(path) === true ? path : find(method, url)?.handler
    },
    hasEmptyParameter: ({ method, url }) => isEmpty(table.find(method, pathOf(url)))
  }
}

/** A URL without its query, which the search would read. */
const pathOf = (url: string): string => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

/** Any API. `HttpApi` itself is invariant in its groups. */
export type AnyApi = Pick<HttpApi.HttpApi<string, HttpApiGroup.Constraint>, "annotations" | "groups" | "identifier">

/** The routes of an API. */
export const routesOf = (api: AnyApi): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api as HttpApi.Top, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => routes.push({ method: endpoint.method, path: endpoint.path })
  })
  return routes
}
