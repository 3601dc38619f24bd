/**
 * The management API on any HTTP server.
 */
import { DeviceCloud, type IdempotencyStore, type Objects, ReplayGuard } from "@device-cloud/core"
import { Context, Effect, Layer, type Scope, type Types } from "effect"
import { HttpRouter, HttpServer, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, HttpApiBuilder, HttpApiScalar, OpenApi } from "effect/http-api"
import * as CommandHandlers from "./command/CommandHandlers.ts"
import * as AlinkRegistration from "./device-access/AlinkRegistration.ts"
import * as DeviceAccessHandlers from "./device-access/DeviceAccessHandlers.ts"
import * as BatchHandlers from "./device/BatchHandlers.ts"
import * as DeviceHandlers from "./device/DeviceHandlers.ts"
import { Api } from "./DeviceCloudApi.ts"
import * as EventHandlers from "./events/EventHandlers.ts"
import * as TopologyHandlers from "./gateway/TopologyHandlers.ts"
import * as HealthRoutes from "./HealthRoutes.ts"
import * as HistoryHandlers from "./history/HistoryHandlers.ts"
import * as MeshHandlers from "./mesh/MeshHandlers.ts"
import { Authorization } from "./middleware/Authorization.ts"
import { IdempotencyMiddleware } from "./middleware/IdempotencyMiddleware.ts"
import { type InvalidRateLimit, type RateLimitOptions, RateLimits } from "./middleware/RateLimits.ts"
import { RequestCheck } from "./middleware/RequestCheck.ts"
import * as RequestPipeline from "./middleware/RequestPipeline.ts"
import * as RouteTable from "./middleware/RouteTable.ts"
import { PublicUrl } from "./object/ObjectAddress.ts"
import * as ObjectHandlers from "./object/ObjectHandlers.ts"
import * as ObjectRoutes from "./object/ObjectRoutes.ts"
import * as OtaHandlers from "./ota/OtaHandlers.ts"
import * as ProductHandlers from "./product/ProductHandlers.ts"
import * as ProjectHandlers from "./project/ProjectHandlers.ts"
import * as BindingHandlers from "./provisioning/BindingHandlers.ts"
import * as BleHandlers from "./provisioning/BleHandlers.ts"
import * as SceneHandlers from "./scene/SceneHandlers.ts"
import * as ThingModelHandlers from "./thing-model/ThingModelHandlers.ts"

/** How the API is served. */
export interface Options<R = never> {
  /** What `GET /readyz` checks. */
  readonly readiness: HealthRoutes.ReadinessChecks
  /** Whether a message over HTTP is refused whose `random` its device has used within five minutes. Default false. */
  readonly strictReplay?: boolean
  /** What the addresses of objects begin with, for example `https://cloud.example.com`. Default: where the request went. */
  readonly publicUrl?: string
  /** How often projects, addresses and devices may ask. Default: no limits. */
  readonly rateLimits?: RateLimitOptions
  /** An API of the application, served beside this one. Default: none. */
  readonly beside?: BesideApi<R>
}

/**
 * An API of the application. Its routes get the request id, the deadline, the
 * limits of addresses, the metrics and the error envelope of this one, and stand in
 * `/openapi.json` and `/docs`. Its endpoints can have the middlewares
 * `Authorization`, `IdempotencyMiddleware` and `RequestCheck`; the server
 * provides them.
 */
export interface BesideApi<R> {
  readonly api: RouteTable.AnyApi
  /** The routes of `api`, for example `HttpApiBuilder.layer(api)` with its handlers. */
  readonly layer: Layer.Layer<never, never, R>
}

/**
 * What an API of the application asks for, besides what the server provides. Its
 * handlers take services of the cloud where they are built; while they handle a
 * request these are not there, and a route that asks for one then keeps it as a
 * `Request` requirement, which `HttpRouter.provideRequest` can fulfil.
 */
export type BesideServices<R> =
  | Exclude<HttpRouter.Request.Without<R>, ServerProvided>
  | HttpRouter.Request.From<"Requires", Exclude<HttpRouter.Request.Only<"Requires", R>, ServerProvided>>

/** What the server provides to an API of the application. */
type ServerProvided =
  | Authorization
  | HttpRouter.HttpRouter
  | HttpRouter.Provided
  | HttpServerServices
  | IdempotencyMiddleware
  | RateLimits
  | RequestCheck

/** What each HTTP server provides. */
type HttpServerServices = Layer.Success<typeof HttpServer.layerServices>

/** What the API asks of the cloud. */
type Cloud = DeviceCloud.DeviceCloud | Objects | IdempotencyStore

/**
 * Serves the API under `/openapi/v1`, its description (`/openapi.json`), a page
 * to read it (`/docs`), `/objects`, and `/healthz`, `/readyz`, `/metrics`, on the
 * HTTP server that is provided. Provide the core and the storage outside of this
 * layer, once, so that all transports share them.
 */
export const layer = <R = never>(
  options: Options<R>
): Layer.Layer<
  never,
  InvalidRateLimit,
  BesideServices<R> | Cloud | HttpServer.HttpServer | HttpServerServices
> => {
  type Needs = BesideServices<R> | Cloud | HttpServer.HttpServer | HttpServerServices
  return Layer.unwrap(
    Effect.contextWith((services: Context.Context<Needs>) => {
      const provided: Layer.Layer<never, InvalidRateLimit, HttpRouter.HttpRouter> = routes(options).pipe(
        Layer.provide(Layer.succeedContext(Context.omit(HttpRouter.HttpRouter)(services)))
      )
      const served = HttpRouter.serve(provided, {
        routerConfig: RouteTable.routerConfig,
        disableLogger: true,
        disableListenLog: true
      })
      return Effect.succeed(withoutCloud(served))
    })
  )
}

/**
 * Builds a layer without the services of the cloud, which each request would
 * carry along (docs/decisions/0036-request-context.md).
 */
const withoutCloud = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) =>
    Effect.updateContext(
      Layer.buildWithMemoMap(layer, memoMap, scope),
      (context: Context.Context<R>) =>
        Context.omit(...DeviceCloud.services, ...DeviceCloud.stores)(context) as Context.Context<R>
    )
  )

/**
 * The same as a function from request to response, to be mounted in another
 * server, on the cloud that is provided; it works until the scope closes.
 */
export const fetchHandler = <R = never>(
  options: Options<R>
): Effect.Effect<(request: Request) => Promise<Response>, never, BesideServices<R> | Cloud | Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<Cloud>()
    const { handler } = yield* Effect.acquireRelease(
      Effect.sync(() =>
        HttpRouter.toWebHandler(
          routes(options).pipe(
            Layer.provide([
              HttpServer.layerServices,
              Layer.succeedContext(Context.omit(HttpRouter.HttpRouter)(context))
            ])
          ),
          // A memo map of its own: it must not share the routes of a server that is built in the same place.
          { routerConfig: RouteTable.routerConfig, disableLogger: true, memoMap: Layer.makeMemoMapUnsafe() }
        )
      ),
      ({ dispose }) => Effect.promise(dispose)
    )
    return (request: Request): Promise<Response> => handler(request)
  })

const openapiPath = "/openapi.json"
const docsPath = "/docs"

const routes = <R>({ beside, publicUrl, rateLimits = {}, readiness, strictReplay }: Options<R>) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)),
    // The signatures of `layer` and `fetchHandler` ask for what this needs.
    (beside?.layer ?? Layer.empty) as Layer.Layer<never>,
    description(beside?.api),
    AlinkRegistration.layer,
    ObjectRoutes.layer,
    HealthRoutes.layer(readiness),
    pipeline(beside?.api)
  ).pipe(
    Layer.provide([RequestCheck.layer, Authorization.layer, IdempotencyMiddleware.layer]),
    Layer.provide(strictReplay === true ? ReplayGuard.layer : Layer.empty),
    Layer.provide(RateLimits.layer(rateLimits)),
    Layer.provide(Layer.succeed(PublicUrl, publicUrl))
  )

const handlers = Layer.mergeAll(
  ProductHandlers.layer,
  ThingModelHandlers.layer,
  DeviceHandlers.layer,
  BatchHandlers.layer,
  TopologyHandlers.layer,
  DeviceAccessHandlers.layer,
  CommandHandlers.layer,
  HistoryHandlers.layer,
  EventHandlers.layer,
  ObjectHandlers.layer,
  OtaHandlers.layer,
  SceneHandlers.layer,
  ProjectHandlers.layer,
  MeshHandlers.layer,
  BleHandlers.layer,
  BindingHandlers.layer
)

/** The OpenAPI description of all routes, and the page to read it. */
const description = (beside: RouteTable.AnyApi | undefined) => {
  const api = (beside === undefined ? Api : Api.addHttpApi(beside as HttpApi.Top)) as unknown as HttpApi.Top
  return Layer.merge(
    HttpRouter.add("GET", openapiPath, Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api)))),
    HttpApiScalar.layer(api, { path: docsPath, scalar: { withDefaultFonts: false } })
  )
}

/** What happens to each request outside of all routes. */
const pipeline = (beside: RouteTable.AnyApi | undefined) =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    const wrap = yield* RequestPipeline.make(
      RouteTable.make([
        ...[openapiPath, docsPath, ...HealthRoutes.paths].map((path) => ({ method: "GET", path }) as const),
        { method: "POST", path: AlinkRegistration.path },
        ...ObjectRoutes.routes,
        ...RouteTable.routesOf(Api),
        ...beside === undefined ? [] : RouteTable.routesOf(beside)
      ])
    )
    yield* router.addGlobalMiddleware((
      app
    ): Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
      wrap(app)
    )
  }))
