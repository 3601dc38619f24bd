/**
 * Routes for operators and their monitoring, without an access key: whether the
 * server lives, whether it is ready, and its metrics (docs/api/operations.md).
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { StorageUnreachable } from "./Failure.ts"

/** The parts that must work before the server is ready, by name. A check that fails, or takes two seconds, makes it not ready. */
export type ReadinessChecks = Readonly<Record<string, Effect.Effect<unknown, unknown>>>

const checkTimeout = "2 seconds"

const ok = (data: unknown) => HttpServerResponse.jsonUnsafe({ code: 0, message: "success", data })

/** The paths of the routes of health. */
export const paths = ["/healthz", "/readyz"] as const

/** Whether this is a route of health. */
export const isHealth = (route: string | undefined): boolean => paths.some((path) => path === route)

/** The path of the metrics. */
export const metricsPath = "/metrics"

/** Serves the routes of health. */
export const layer = (checks: ReadinessChecks) =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    yield* router.add("GET", "/healthz", ok({ status: "up" }))

    const check = Effect.forEach(Object.entries(checks), ([name, effect]) =>
      effect.pipe(
        Effect.timeout(checkTimeout),
        Effect.as(true),
        Effect.orElseSucceed(() => false),
        Effect.map((ready) => [name, ready] as const)
      ), { concurrency: "unbounded" })
    yield* router.add(
      "GET",
      "/readyz",
      Effect.map(check, (results) => {
        const failing = results.filter(([, ready]) => !ready).map(([name]) => name)
        return failing.length === 0
          ? ok(Object.fromEntries(results.map(([name]) => [name, "ok"])))
          : HttpServerResponse.jsonUnsafe(StorageUnreachable.make({ message: `Not ready: ${failing.join(", ")}` }), {
            status: 503
          })
      })
    )
  }))

/** Writing all metrics down takes long enough that whoever asks without end must not cause it each time. */
const metricsAge = "1 second"

/** Serves the metrics, which are at most a second old. */
export const layerMetrics = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const { format } = PrometheusMetrics
  const response = Effect.map(
    format(),
    (text) => HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
  )
  yield* router.add("GET", metricsPath, yield* Effect.cachedWithTTL(response, metricsAge))
}))
