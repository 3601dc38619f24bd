/**
 * Pages that are served beside the API, on its address. They get the request id,
 * the limits of addresses, the metrics and the security headers of the API.
 * `@device-cloud/console` has such pages.
 */
import type { Mac } from "@device-cloud/core"
import type { Layer } from "effect"
import type { HttpPlatform, HttpRouter } from "effect/http"

export interface Pages {
  /** All paths that begin with it are theirs, for example `/console`; `/` leads there. */
  readonly path: `/${string}`
  /** Responds to GET of the path, and of all paths below it. */
  readonly layer: Layer.Layer<never, never, HttpPlatform.HttpPlatform | HttpRouter.HttpRouter | Mac>
}
