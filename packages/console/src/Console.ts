/**
 * The console at `/console`.
 */
import type { Pages } from "@device-cloud/http"
import * as Site from "./Site.ts"

/** Where it is. Its page knows the path, so it cannot be another. */
export const path = Site.path

/** From `src` and from `dist`. */
const directory = new URL("../dist/site/", import.meta.url)

/** Serves the console on a router. The management API has to be on the same address. */
export const layer: Pages["layer"] = Site.layer(directory)

/**
 * The same for `ManagementApi`, which serves it beside the API:
 *
 * ```ts
 * ManagementApi.layer({ readiness: {}, pages: Console.pages })
 * ```
 */
export const pages: Pages = { path, layer }
