/**
 * How many requests came, by route and status, and how long they took.
 */
import { type Context, Effect, Metric } from "effect"
import { HttpMethod } from "effect/http"
import { routeOf } from "./RequestLog.ts"

// Each series is a metric of its own, which knows its key: series by `Metric.withAttributes` share one metric, which
// makes its key anew (5 µs) when another series was counted.
const requestsOf = (attributes: { readonly method: string; readonly route: string; readonly status: string }) =>
  Metric.counter("device_cloud_http_requests_total", {
    description: "Answered HTTP requests, by method, route and status",
    incremental: true,
    attributes
  })
const secondsOf = (attributes: { readonly method: string; readonly route: string }) =>
  Metric.histogram("device_cloud_http_request_seconds", {
    description: "From a request to the start of its answer, by method and route",
    boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
    attributes
  })

/** Counts a request. `context` is that of the fiber of the router; `millis` is how long the response took. */
export type Count = (context: Context.Context<never>, method: string, status: number, millis: number) => void

interface RouteMetrics {
  readonly histogram: Metric.Histogram<number>
  /** By status. */
  readonly counters: Map<number, Metric.Counter<number>>
}

/** Makes a counter on the metrics registry that is provided. */
export const make: Effect.Effect<Count> = Effect.map(Effect.context<never>(), (registry) => {
  const byRoute = new Map<string, Map<string, RouteMetrics>>()
  const metricsOf = (method: string, route: string): RouteMetrics => {
    const ofRoute = byRoute.get(route) ?? new Map<string, RouteMetrics>()
    const metrics = { histogram: secondsOf({ method, route }), counters: new Map() }
    byRoute.set(route, ofRoute.set(method, metrics))
    return metrics
  }
  return (context, sent, status, millis) => {
    // A client can send any text as the method.
    const method = HttpMethod.all.has(sent as HttpMethod.HttpMethod) ? sent : "other"
    const route = routeOf(context)
    const { counters, histogram } = byRoute.get(route)?.get(method) ?? metricsOf(method, route)
    let counter = counters.get(status)
    if (counter === undefined) {
      counter = requestsOf({ method, route, status: String(status) })
      counters.set(status, counter)
    }
    counter.updateUnsafe(1, registry)
    histogram.updateUnsafe(millis / 1000, registry)
  }
})
