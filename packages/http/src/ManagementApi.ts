/**
 * The management API on any HTTP server.
 */
import { DeviceCloud, type Mac, Objects, ReplayGuard, type ReplayStore, StoreHealth } from "@device-cloud/core"
import { Context, Effect, Layer, Option, type Scope, type Types } from "effect"
import { HttpEffect, HttpRouter, HttpServer, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as AuditHandlers from "./audit/AuditHandlers.ts"
import * as BrowserSessionHandlers from "./browser-session/BrowserSessionHandlers.ts"
import * as BulkCommandHandlers from "./bulk/BulkCommandHandlers.ts"
import * as CertificateHandlers from "./certificate/CertificateHandlers.ts"
import * as CodecHandlers from "./codec/CodecHandlers.ts"
import * as CommandHandlers from "./command/CommandHandlers.ts"
import * as ConfigurationHandlers from "./configuration/ConfigurationHandlers.ts"
import * as AlinkRegistration from "./device-access/AlinkRegistration.ts"
import * as AlinkUplink from "./device-access/AlinkUplink.ts"
import * as DeviceAccessHandlers from "./device-access/DeviceAccessHandlers.ts"
import * as BatchHandlers from "./device/BatchHandlers.ts"
import * as DeviceHandlers from "./device/DeviceHandlers.ts"
import { Api } from "./DeviceCloudApi.ts"
import * as DocsRoutes from "./docs/DocsRoutes.ts"
import * as EventHandlers from "./events/EventHandlers.ts"
import type { EventStreamLimits } from "./events/EventStreams.ts"
import * as TopologyHandlers from "./gateway/TopologyHandlers.ts"
import * as HealthRoutes from "./HealthRoutes.ts"
import * as HomeRoute from "./HomeRoute.ts"
import * as HistoryRetentionHandlers from "./history/HistoryRetentionHandlers.ts"
import * as HistoryHandlers from "./history/HistoryHandlers.ts"
import * as DeviceGroupHandlers from "./group/DeviceGroupHandlers.ts"
import * as JobHandlers from "./job/JobHandlers.ts"
import * as MeshHandlers from "./mesh/MeshHandlers.ts"
import { Authorization } from "./middleware/Authorization.ts"
import { GivenPeer, type RequestPeer } from "./middleware/ClientAddress.ts"
import { ExpensiveRead, type ExpensiveReadLimits } from "./middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "./middleware/IdempotencyMiddleware.ts"
import { type InvalidRateLimit, type RateLimitOptions, RateLimits } from "./middleware/RateLimits.ts"
import { RequestCheck } from "./middleware/RequestCheck.ts"
import * as RequestPipeline from "./middleware/RequestPipeline.ts"
import * as RequestSpan from "./middleware/RequestSpan.ts"
import * as RouteTable from "./middleware/RouteTable.ts"
import { PublicUrl } from "./object/ObjectAddress.ts"
import * as ObjectHandlers from "./object/ObjectHandlers.ts"
import * as ObjectRoutes from "./object/ObjectRoutes.ts"
import * as OtaHandlers from "./ota/OtaHandlers.ts"
import type { Pages } from "./Pages.ts"
import * as ProductHandlers from "./product/ProductHandlers.ts"
import * as OverviewHandlers from "./overview/OverviewHandlers.ts"
import * as QuotaHandlers from "./project/QuotaHandlers.ts"
import * as ProjectHandlers from "./project/ProjectHandlers.ts"
import * as ScopeGroups from "./project/ScopeGroups.ts"
import * as BindingHandlers from "./provisioning/BindingHandlers.ts"
import * as BleHandlers from "./provisioning/BleHandlers.ts"
import * as SceneHandlers from "./scene/SceneHandlers.ts"
import * as SubscriptionHandlers from "./subscription/SubscriptionHandlers.ts"
import * as TraceHandlers from "./trace/TraceHandlers.ts"
import * as ThingModelHandlers from "./thing-model/ThingModelHandlers.ts"

/** How the API is served. */
export interface Options<R = never> {
  /** What `GET /readyz` checks. */
  readonly readiness: HealthRoutes.ReadinessChecks
  /**
   * Whether a message over HTTP is refused whose `random` its device has used while
   * its signature may still count. Default false: only of products whose
   * `uplinkSignature` is `timestamped`.
   */
  readonly strictReplay?: boolean
  /** What the addresses of objects begin with, for example `https://cloud.example.com`. Default: where the request went. */
  readonly publicUrl?: string
  /** How often projects, addresses and devices may ask. Default: no limits. */
  readonly rateLimits?: RateLimitOptions
  /** How many streams `GET /events` may have. Default: 100 for each project, 1,000 in total. */
  readonly eventStreams?: EventStreamLimits
  /** How many lists, histories and exports a project may read at once. Default: 2, and 32 that wait. */
  readonly expensiveReads?: ExpensiveReadLimits
  /** Whether `/docs` and `/openapi.json` are served. Default true. */
  readonly docs?: boolean
  /** Whether `/metrics` is served. Default true. */
  readonly metrics?: boolean
  /**
   * Whether registrations and messages of devices over plain HTTP are refused,
   * except from this machine. Default false.
   */
  readonly secureDevices?: boolean
  /** Origins whose pages may call the API from a browser, such as `https://console.example.com`. Default: none. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** An API of the application, served beside this one. Default: none. */
  readonly beside?: BesideApi<R>
  /** Pages for people, such as `Console.pages` of `@device-cloud/console`. `/` leads to them, and else to `/docs`. Default: none. */
  readonly pages?: Pages
}

/** What a server for operators serves. */
export interface OperationsOptions {
  /** What `GET /readyz` checks. */
  readonly readiness: HealthRoutes.ReadinessChecks
  /** Whether `/docs` and `/openapi.json` are served. Default true. */
  readonly docs?: boolean
  /** The API of the application that `/docs` and `/openapi.json` describe as well. Default: none. */
  readonly beside?: RouteTable.AnyApi
}

/**
 * An API of the application. Its routes get the request id, the deadline, the
 * limits of addresses, the metrics and the error envelope of this one, and stand in
 * `/openapi.json` and `/docs`. Its endpoints can have the middlewares
 * `Authorization`, `ExpensiveRead`, `IdempotencyMiddleware` and `RequestCheck`;
 * the server provides them.
 */
export interface BesideApi<R> {
  readonly api: RouteTable.AnyApi
  /**
   * The routes of `api`, for example `HttpApiBuilder.layer(api)`, to which the layers
   * of its groups are provided. Routes that it does not serve respond 50000.
   */
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
  | ExpensiveRead
  | HttpRouter.HttpRouter
  | HttpRouter.Provided
  | HttpServerServices
  | IdempotencyMiddleware
  | RateLimits
  | RequestCheck

/** What each HTTP server provides. */
type HttpServerServices = Layer.Success<typeof HttpServer.layerServices>

/** What the API asks of the cloud. */
type Cloud = DeviceCloud.DeviceCloud | Objects | ReplayStore | Mac

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
      }).pipe(Layer.provide(RequestSpan.layer))
      return Effect.succeed(
        Layer.fromBuild((memoMap, scope) => withoutCloud(Layer.buildWithMemoMap(served, memoMap, scope)))
      )
    })
  )
}

/**
 * Serves `/healthz`, `/readyz`, `/metrics`, `/docs` and `/openapi.json` on the HTTP
 * server that is provided: one of their own, which only operators can reach. Give
 * `layer` the options `docs: false` and `metrics: false` then.
 */
export const layerOperations = (
  { beside, docs = true, readiness }: OperationsOptions
): Layer.Layer<never, never, Mac | HttpServer.HttpServer | HttpServerServices> =>
  HttpRouter.serve(
    Layer.mergeAll(
      operations({ docs, metrics: true, readiness, pages: undefined, beside }),
      pipeline(operationsRoutes({ docs, metrics: true, pages: undefined }), { secureDevices: false, corsOrigins: [] })
    ).pipe(Layer.provide(RateLimits.layerOff)),
    { routerConfig: RouteTable.routerConfig, disableLogger: true, disableListenLog: true }
  ).pipe(Layer.provide(RequestSpan.layer))

/**
 * Builds without the services of the cloud, which each request would carry along
 * (docs/decisions/0036-request-context.md).
 */
const withoutCloud = <A, E, R>(build: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(
    build,
    (context: Context.Context<R>) =>
      Context.omit(
        ...DeviceCloud.services,
        ...DeviceCloud.stores,
        ...DeviceCloud.platform,
        Objects,
        StoreHealth
      )(context) as Context.Context<R>
  )

/**
 * The same as a function from request to response, to be mounted in another
 * server, on the cloud that is provided; it works until the scope closes. Pass on
 * what the server knows about the connection of a request: without an address, all
 * clients count as one.
 */
export const fetchHandler = <R = never>(
  options: Options<R>
): Effect.Effect<
  (request: Request, peer?: RequestPeer) => Promise<Response>,
  InvalidRateLimit,
  BesideServices<R> | Cloud | Scope.Scope
> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<Cloud>()
    const scope = yield* Effect.scope
    const served = routes(options).pipe(
      Layer.merge(RequestSpan.layer),
      Layer.provide([
        HttpServer.layerServices,
        Layer.succeedContext(Context.omit(HttpRouter.HttpRouter)(context))
      ]),
      Layer.provideMerge(HttpRouter.layer),
      Layer.provide(Layer.succeed(HttpRouter.RouterConfig, RouteTable.routerConfig))
    ) as Layer.Layer<HttpRouter.HttpRouter, InvalidRateLimit>
    // A memo map of its own: it must not share the routes of a server that is built in the same place.
    const built = yield* withoutCloud(Layer.buildWithMemoMap(served, Layer.makeMemoMapUnsafe(), scope))
    const handler = HttpEffect.toWebHandlerWith<
      HttpRouter.HttpRouter,
      HttpServerRequest.HttpServerRequest | Scope.Scope
    >(built)(Context.get(built, HttpRouter.HttpRouter).asHttpEffect())
    return (request: Request, peer: RequestPeer = {}): Promise<Response> =>
      handler(request, Context.make(GivenPeer, peer) as Context.Context<never>)
  })

const routes = <R>(
  {
    beside,
    corsOrigins = [],
    docs = true,
    eventStreams = {},
    expensiveReads = {},
    metrics = true,
    pages,
    publicUrl,
    rateLimits = {},
    readiness,
    secureDevices = false,
    strictReplay = false
  }: Options<R>
) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)),
    // The signatures of `layer` and `fetchHandler` ask for what this needs.
    (beside?.layer ?? Layer.empty) as Layer.Layer<never>,
    pages?.layer ?? Layer.empty,
    operations({ docs, metrics, readiness, pages, beside: beside?.api }),
    AlinkRegistration.layer,
    AlinkUplink.layer,
    ObjectRoutes.layer,
    pipeline([
      ...operationsRoutes({ docs, metrics, pages }),
      { method: "POST", path: AlinkRegistration.path },
      ...AlinkUplink.routes,
      ...ObjectRoutes.routes,
      ...RouteTable.routesOf(Api),
      ...beside === undefined ? [] : RouteTable.routesOf(beside.api)
    ], { secureDevices, corsOrigins })
  ).pipe(
    Layer.provide([
      RequestCheck.layer,
      Authorization.layer,
      ExpensiveRead.layer(expensiveReads),
      IdempotencyMiddleware.layer
    ]),
    Layer.provide(ReplayGuard.layer),
    Layer.provide(Layer.succeed(DeviceAccessHandlers.StrictReplay, strictReplay)),
    Layer.provide(RateLimits.layer(rateLimits)),
    Layer.provide(Layer.succeed(PublicUrl, publicUrl)),
    Layer.provide(
      Layer.succeed(
        ScopeGroups.Groups,
        [Api, ...beside === undefined ? [] : [beside.api]].flatMap(ScopeGroups.groupsOf)
      )
    ),
    Layer.provide(Layer.succeed(EventHandlers.Limits, eventStreams))
  )

const handlers = Layer.mergeAll(
  ProductHandlers.layer,
  ThingModelHandlers.layer,
  CertificateHandlers.layer,
  CodecHandlers.layer,
  ConfigurationHandlers.layer,
  DeviceHandlers.layer,
  BatchHandlers.layer,
  TopologyHandlers.layer,
  DeviceAccessHandlers.layer,
  CommandHandlers.layer,
  HistoryHandlers.layer,
  HistoryRetentionHandlers.layer,
  JobHandlers.layer,
  EventHandlers.layer,
  ObjectHandlers.layer,
  OtaHandlers.layer,
  SceneHandlers.layer,
  ProjectHandlers.layer,
  MeshHandlers.layer,
  BleHandlers.layer,
  BindingHandlers.layer,
  BrowserSessionHandlers.layer,
  BulkCommandHandlers.layer,
  DeviceGroupHandlers.layer,
  AuditHandlers.layer,
  QuotaHandlers.layer,
  SubscriptionHandlers.layer,
  OverviewHandlers.layer,
  TraceHandlers.layer
)

/** The routes for operators and developers, without an access key. */
const operations = (
  { beside, docs, metrics, pages, readiness }: {
    readonly docs: boolean
    readonly metrics: boolean
    readonly pages: Pages | undefined
    readonly readiness: HealthRoutes.ReadinessChecks
    readonly beside: RouteTable.AnyApi | undefined
  }
) =>
  Layer.mergeAll(
    HealthRoutes.layer(readiness),
    metrics ? HealthRoutes.layerMetrics : Layer.empty,
    docs ? DocsRoutes.layer(beside) : Layer.empty,
    Option.match(homeOf({ docs, pages }), { onNone: () => Layer.empty, onSome: HomeRoute.layer })
  )

/** Where `/` leads. */
const homeOf = (
  { docs, pages }: { readonly docs: boolean; readonly pages: Pages | undefined }
): Option.Option<string> => Option.fromUndefinedOr(pages?.path ?? (docs ? DocsRoutes.docsPath : undefined))

/** The same routes, for the table of all. */
const operationsRoutes = (
  { docs, metrics, pages }: {
    readonly docs: boolean
    readonly metrics: boolean
    readonly pages: Pages | undefined
  }
): ReadonlyArray<RouteTable.Route> =>
  [
    ...HealthRoutes.paths,
    ...metrics ? [HealthRoutes.metricsPath] : [],
    ...docs ? DocsRoutes.paths : [],
    ...pages === undefined ? [] : [pages.path, `${pages.path}/*`],
    ...Option.isSome(homeOf({ docs, pages })) ? [HomeRoute.path] : []
  ].map((path) => ({ method: "GET", path }))

/** What happens to each request outside of all routes. */
const pipeline = (routes: ReadonlyArray<RouteTable.Route>, options: RequestPipeline.Options) =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    const wrap = yield* RequestPipeline.make(RouteTable.make(routes), options)
    yield* router.addGlobalMiddleware((
      app
    ): Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
      wrap(app)
    )
  }))
