/**
 * The files that Vite has built, as they are served.
 */
import { type Pages, PreparedFile, securityHeaders } from "@device-cloud/http"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { readdir, readFile } from "node:fs/promises"
import { extname, join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

/** Where the site is. */
export const path = "/console"

/** Responds to a request for one file. */
type Respond = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>

/** The page runs its own files and no others, and reaches no server but this one. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'"
].join("; ")

const headers = { ...securityHeaders, "content-security-policy": contentSecurityPolicy }

const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

const page = "index.html"

/** Below it, the name of a file says what is in it. */
const assets = "assets/"

const cacheControlOf = (name: string): string =>
  name === page
    ? "no-cache"
    : name.startsWith(assets)
    ? "public, max-age=31536000, immutable"
    : "public, max-age=3600"

const missing = (text: string): Respond => Effect.succeed(HttpServerResponse.text(text, { status: 404, headers }))

/**
 * Serves the files of a directory. Any other path that is no asset is the page, so
 * that what it shows has an address.
 */
export const layer = (directory: URL): Pages["layer"] =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    const files = yield* prepare(fileURLToPath(directory))
    const index = files.get(page) ??
      missing("The console is not built; run `npm run build --workspace @device-cloud/console`.\n")
    const noAsset = missing("There is no such file.\n")
    const respond = Effect.flatMap(HttpRouter.RouteContext, ({ params }) => {
      const name = params["*"] ?? ""
      return files.get(name) ?? (name.startsWith(assets) ? noAsset : index)
    })
    // Of `/console` itself, too.
    yield* router.add("GET", `${path}/*`, respond)
    // The router finds no route for a path that it cannot decode.
    yield* router.addGlobalMiddleware((app) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => isBroken(request) ? index : app)
    )
  }))

/** Whether a request asks for a page at a path whose escapes are none, such as `/console/devices/%ZZ`. */
const isBroken = ({ method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  (method === "GET" || method === "HEAD") && url.startsWith(`${path}/`) && !isEncoded(url.split("?", 1)[0]!)

const isEncoded = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/**
 * The files of a directory by name. All are read now: a page loads some of them hours
 * later, when an update may have put others in their place.
 */
const prepare = Effect.fnUntraced(function*(root: string) {
  const entries = yield* Effect.promise(() => readdir(root, { recursive: true, withFileTypes: true }).catch(() => []))
  const files = yield* Effect.forEach(
    entries.filter((entry) => entry.isFile()),
    Effect.fnUntraced(function*(entry) {
      const file = join(entry.parentPath, entry.name)
      const name = relative(root, file).split(sep).join("/")
      const content: PreparedFile.Content = {
        bytes: yield* Effect.promise(() => readFile(file)),
        contentType: contentTypes[extname(name)] ?? "application/octet-stream",
        cacheControl: cacheControlOf(name),
        headers
      }
      return [name, yield* PreparedFile.make(Effect.succeed(content))] as const
    }),
    { concurrency: "unbounded" }
  )
  return new Map<string, Respond>(files)
})
