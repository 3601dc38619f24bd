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

/** The paths of the routes. */
export const paths = ["/healthz", "/readyz", "/metrics"] as const

/** Serves the routes. */
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

    const { format } = PrometheusMetrics
    yield* router.add(
      "GET",
      "/metrics",
      Effect.map(format(), (text) =>
        HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" }))
    )
  }))
