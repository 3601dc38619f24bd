/**
 * The OpenAPI description of all routes (`/openapi.json`), and the page to read
 * it (`/docs`).
 */
import { Mac } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Base64 } from "effect/encoding"
import { HttpRouter } from "effect/http"
import { type HttpApi, HttpApiScalar, OpenApi } from "effect/http-api"
import { Api } from "../DeviceCloudApi.ts"
import type { AnyApi } from "../middleware/RouteTable.ts"
import * as PreparedFile from "../PreparedFile.ts"

const openapiPath = "/openapi.json"

/** The page. */
export const docsPath = "/docs"

/** The paths of the routes. */
export const paths = [openapiPath, docsPath] as const

/** Serves the description of the API and of one beside it. */
export const layer = (beside: AnyApi | undefined) => {
  const api = (beside === undefined ? Api : Api.addHttpApi(beside as HttpApi.Top)) as unknown as HttpApi.Top
  return HttpRouter.use(Effect.fnUntraced(function*(router) {
    const mac = yield* Mac
    const description = Effect.sync((): PreparedFile.Content => ({
      bytes: new TextEncoder().encode(JSON.stringify(OpenApi.fromApi(api))),
      contentType: "application/json",
      headers: {}
    }))
    const page = Effect.map(scalarPage(api), (text): PreparedFile.Content => ({
      bytes: new TextEncoder().encode(text),
      contentType: "text/html; charset=utf-8",
      headers: { "content-security-policy": policyOf(mac, text) }
    }))
    yield* router.add("GET", openapiPath, yield* PreparedFile.make(description))
    yield* router.add("GET", docsPath, yield* PreparedFile.make(page))
  }))
}

/** Effect has the page as a route only, so this asks a server that has nothing else. */
const scalarPage = (api: HttpApi.Top): Effect.Effect<string> =>
  Effect.acquireUseRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(HttpApiScalar.layer(api, { path: docsPath, scalar: { withDefaultFonts: false } }), {
        disableLogger: true,
        memoMap: Layer.makeMemoMapUnsafe()
      })
    ),
    ({ handler }) =>
      Effect.promise(() => handler(new Request(`http://localhost${docsPath}`)).then((response) => response.text())),
    ({ dispose }) => Effect.promise(dispose)
  )

/**
 * The page runs its own scripts and no others, no text as code, and reaches no
 * server but this one. Its scripts set styles while they run.
 */
const policyOf = (mac: Mac["Service"], page: string): string => {
  const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map(([, script = ""]) => {
    // A browser reads each end of a line as a line feed.
    const bytes = new TextEncoder().encode(script.replace(/\r\n?/g, "\n"))
    return `'sha256-${Base64.encode(mac.sha256(bytes))}'`
  })
  return [
    "default-src 'none'",
    `script-src ${scripts.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}
