import { ManagementApi } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll } from "vitest"
import * as Site from "../src/Site.ts"

const root = mkdtempSync(join(tmpdir(), "device-cloud-console-"))
afterAll(() => rmSync(root, { recursive: true }))

const script = "export const answer = 42\n".repeat(100)
const files = {
  "index.html": "<!doctype html><title>Device Cloud</title>",
  "icon.svg": "<svg/>",
  "assets/main-a1b2.js": script,
  "assets/main-a1b2.css": "body {}",
  "assets/late-c3d4.js": "export const late = true\n"
}
mkdirSync(join(root, "site", "assets"), { recursive: true })
for (const [name, text] of Object.entries(files)) writeFileSync(join(root, "site", name), text)
writeFileSync(join(root, "secret.txt"), "not for the console")

const pagesOf = (directory: string) => ({
  path: Site.path,
  layer: Site.layer(pathToFileURL(`${join(root, directory)}/`))
} as const)

const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  call(method, `//${path}`, { key: null, headers: { "accept-encoding": "identity", ...headers } })

layer(testApi(StorageMemory.layer, { pages: pagesOf("site") }), { excludeTestServices: true })("the console", (it) => {
  it.effect("is a page at each of its paths, and `/` leads there", () =>
    Effect.gen(function*() {
      for (
        const path of [
          "console",
          "console/",
          "console/products/a1B2?tab=model",
          "console/%2e%2e/secret.txt",
          "console/devices/%ZZ"
        ]
      ) {
        const { headers, status, text } = yield* get(path)
        assert.deepStrictEqual([status, text], [200, files["index.html"]], path)
        assert.deepInclude(headers, { "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" })
      }
      const home = yield* get("")
      assert.deepStrictEqual([home.status, home.headers["location"]], [302, "/console"])
      assert.strictEqual((yield* get("consoles")).body.code, 40400)
      assert.strictEqual((yield* get("openapi/v1/products/%ZZ")).body.code, 40400)
      const { body, headers } = yield* get("console/x", {}, "POST")
      assert.deepStrictEqual([body.code, headers["allow"]], [40500, "HEAD, GET"])
    }))

  it.effect("has files that a browser keeps, and no others", () =>
    Effect.gen(function*() {
      const { headers, text } = yield* get("console/assets/main-a1b2.js")
      assert.strictEqual(text, script)
      assert.deepInclude(headers, {
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=31536000, immutable"
      })
      assert.match(String(headers["etag"]), /^"[0-9a-f]{32}"$/)
      const again = yield* get("console/assets/main-a1b2.js", { "if-none-match": String(headers["etag"]) })
      assert.deepStrictEqual([again.status, again.text], [304, ""])
      const head = yield* get("console/assets/main-a1b2.js", {}, "HEAD")
      assert.deepStrictEqual([head.status, head.headers["content-length"], head.text], [200, String(script.length), ""])
      assert.strictEqual((yield* get("console/icon.svg")).headers["content-type"], "image/svg+xml")
      for (const path of ["console/assets/other.js", "console/assets/..%2f..%2fsecret.txt"]) {
        const { headers, status, text } = yield* get(path)
        assert.deepStrictEqual([status, text, headers["cache-control"]], [404, "There is no such file.\n", undefined])
      }
    }))

  it.effect("stays as it was when the server started, whatever an update does to its files", () =>
    Effect.gen(function*() {
      const file = join(root, "site", "assets", "late-c3d4.js")
      rmSync(file)
      const { status, text } = yield* get("console/assets/late-c3d4.js")
      assert.deepStrictEqual([status, text], [200, files["assets/late-c3d4.js"]])
    }))

  it.effect("is compressed as the browser accepts", () =>
    Effect.gen(function*() {
      const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      const ask = (coding: string) =>
        Effect.promise(async () => {
          const response = await fetch(`${url}/console/assets/main-a1b2.js`, { headers: { "accept-encoding": coding } })
          return { headers: response.headers, text: await response.text() }
        })
      for (const coding of ["br", "gzip"]) {
        const { headers, text } = yield* ask(coding)
        assert.strictEqual(text, script)
        assert.deepStrictEqual([headers.get("content-encoding"), headers.get("vary")], [coding, "Accept-Encoding"])
        assert.isBelow(Number(headers.get("content-length")), script.length / 5)
        assert.match(headers.get("etag")!, new RegExp(`^"[0-9a-f]{32}-${coding}"$`))
      }
    }))

  it.effect("runs its own files and no others, in no frame", () =>
    Effect.gen(function*() {
      for (const path of ["console", "console/assets/main-a1b2.js", "console/assets/other.js"]) {
        const { headers } = yield* get(path)
        assert.deepInclude(headers, {
          "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
            "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
            "frame-ancestors 'none'",
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer"
        })
      }
    }))

  it.effect("is in the API as a function from request to response, too", () =>
    Effect.gen(function*() {
      const handle = yield* ManagementApi.fetchHandler({ readiness: {}, pages: pagesOf("site") })
      const ask = (path: string) => Effect.promise(() => handle(new Request(`http://localhost${path}`)))
      const page = yield* ask("/console/devices")
      assert.deepStrictEqual([page.status, yield* Effect.promise(() => page.text())], [200, files["index.html"]])
      const file = yield* ask("/console/assets/main-a1b2.css")
      assert.strictEqual(file.headers.get("content-type"), "text/css; charset=utf-8")
      assert.strictEqual((yield* ask("/openapi/v1/products")).status, 401)
    }))
})

layer(testApi(StorageMemory.layer, { pages: pagesOf("not-built") }), { excludeTestServices: true })(
  "a console that is not built",
  (it) => {
    it.effect("says how to build it", () =>
      Effect.gen(function*() {
        const { status, text } = yield* get("console")
        assert.deepStrictEqual([status, text], [
          404,
          "The console is not built; run `npm run build --workspace @device-cloud/console`.\n"
        ])
      }))
  }
)
