/**
 * The management API on any HTTP server.
 */
import { Context, Effect, Layer, type Types } from "effect"
import { type HttpMethod, HttpRouter, HttpServer, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { type DeviceCloud, type IdempotencyStore, type Objects, ReplayGuard } from "@device-cloud/core"
import { Authorization } from "./middleware/Authorization.ts"
import * as BindingHandlers from "./provisioning/BindingHandlers.ts"
import * as BleHandlers from "./provisioning/BleHandlers.ts"
import * as CommandHandlers from "./command/CommandHandlers.ts"
import * as AlinkRegistration from "./device-access/AlinkRegistration.ts"
import * as DeviceAccessHandlers from "./device-access/DeviceAccessHandlers.ts"
import * as BatchHandlers from "./device/BatchHandlers.ts"
import * as DeviceHandlers from "./device/DeviceHandlers.ts"
import { Api } from "./DeviceCloudApi.ts"
import * as ErrorEnvelope from "./middleware/ErrorEnvelope.ts"
import { lean, ofCloud } from "./HandlerGroup.ts"
import * as MeshHandlers from "./mesh/MeshHandlers.ts"
import * as ObjectRoutes from "./object/ObjectRoutes.ts"
import { PublicUrl } from "./object/ObjectAddress.ts"
import * as ObjectHandlers from "./object/ObjectHandlers.ts"
import * as EventHandlers from "./events/EventHandlers.ts"
import * as OtaHandlers from "./ota/OtaHandlers.ts"
import * as HealthRoutes from "./HealthRoutes.ts"
import * as ProductHandlers from "./product/ProductHandlers.ts"
import * as ProjectHandlers from "./project/ProjectHandlers.ts"
import { type RateLimitOptions, RateLimits } from "./middleware/RateLimits.ts"
import { RequestCheck } from "./middleware/RequestCheck.ts"
import * as SceneHandlers from "./scene/SceneHandlers.ts"
import * as HistoryHandlers from "./history/HistoryHandlers.ts"
import * as TopologyHandlers from "./gateway/TopologyHandlers.ts"
import * as ThingModelHandlers from "./thing-model/ThingModelHandlers.ts"

const openapiPath = "/openapi.json"
const docsPath = "/docs"

const api = HttpApiBuilder.layer(Api, { openapiPath }).pipe(
  Layer.provide([
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
  ]),
  Layer.provide([RequestCheck.layer, Authorization.layer])
)

const docs = HttpApiScalar.layer(Api, { path: docsPath, scalar: { withDefaultFonts: false } })

const routeTable = () => {
  const routes: Array<{ readonly method: HttpMethod.HttpMethod; readonly path: `/${string}` }> = [
    openapiPath,
    docsPath,
    ...HealthRoutes.paths
  ].map((path) => ({ method: "GET", path: path as `/${string}` }))
  routes.push({ method: "POST", path: AlinkRegistration.path }, ...ObjectRoutes.routes)
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => routes.push({ method: endpoint.method, path: endpoint.path as `/${string}` })
  })
  return ErrorEnvelope.makeRouteTable(routes)
}

const completeAnswers = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const complete = yield* ErrorEnvelope.make(routeTable())
  yield* router.addGlobalMiddleware((
    app
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, HttpServerRequest.HttpServerRequest> =>
    complete(app)
  )
}))

export interface Options {
  readonly readiness: HealthRoutes.ReadinessChecks
  /** Whether a message over HTTP is refused whose `random` its device has used within five minutes. Default false. */
  readonly strictReplay?: boolean
  /** What the addresses of objects begin with, for example `https://cloud.example.com`. Default: where the request went. */
  readonly publicUrl?: string
  /** How often projects, addresses and devices may ask. Default: as often as they like. */
  readonly rateLimits?: RateLimitOptions
}

const routes = ({ publicUrl, rateLimits = {}, readiness, strictReplay }: Options) =>
  Layer.mergeAll(
    api,
    docs,
    AlinkRegistration.layer,
    ObjectRoutes.layer,
    HealthRoutes.layer(readiness),
    completeAnswers
  ).pipe(
    Layer.provide(strictReplay === true ? ReplayGuard.layer : Layer.empty),
    Layer.provide(RateLimits.layer(rateLimits)),
    Layer.provide(Layer.succeed(PublicUrl, publicUrl))
  )

/**
 * Serves the API under `/openapi/v1`, its description (`/openapi.json`), a page
 * to read it (`/docs`), `/objects`, and `/healthz`, `/readyz`, `/metrics`, on the
 * HTTP server that is provided. Provide the core and the storage outside of this
 * layer, once, so that all transports share them.
 */
export const layer = (options: Options) =>
  Layer.unwrap(
    Effect.contextWith((context: Context.Context<DeviceCloud.DeviceCloud | Objects | IdempotencyStore>) =>
      Effect.succeed(
        lean(
          HttpRouter.serve(Layer.provide(routes(options), Layer.succeedContext(ofCloud(context))), {
            routerConfig: ErrorEnvelope.routerConfig,
            disableLogger: true,
            disableListenLog: true
          })
        )
      )
    )
  )

/**
 * The same as a function from request to response, to be mounted in another
 * server, on the cloud that is provided; it works until the scope closes.
 */
export const fetchHandler = (options: Options) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<DeviceCloud.DeviceCloud | Objects | IdempotencyStore>()
    const { handler } = yield* Effect.acquireRelease(
      Effect.sync(() =>
        HttpRouter.toWebHandler(
          routes(options).pipe(
            Layer.provide([
              HttpServer.layerServices,
              Layer.succeedContext(Context.omit(HttpRouter.HttpRouter)(context))
            ])
          ),
          // Not that of a server which is built in the same place.
          { routerConfig: ErrorEnvelope.routerConfig, disableLogger: true, memoMap: Layer.makeMemoMapUnsafe() }
        )
      ),
      ({ dispose }) => Effect.promise(dispose)
    )
    return (request: Request): Promise<Response> => handler(request)
  })
