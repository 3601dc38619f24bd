import { MaxObjectSize, Objects } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { createHash, randomBytes } from "node:crypto"
import { request as httpRequest } from "node:http"

const boundary = "----boundary"

/** A form with one file, as a browser sends it. */
const form = (
  content: Buffer,
  options: { readonly name?: string; readonly field?: string; readonly type?: string } = {}
) => {
  const { field = "file", name = "firmware.bin", type = "application/octet-stream" } = options
  return Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n` +
        `--${boundary}\r\nContent-Disposition: form-data; name="${field}"; filename="${name}"\r\n` +
        `Content-Type: ${type}\r\n\r\n`
    ),
    content,
    Buffer.from(`\r\n--${boundary}--\r\n`)
  ])
}

const multipart = { "content-type": `multipart/form-data; boundary=${boundary}` }

const upload = (content: Buffer, options: Parameters<typeof form>[1] = {}, path = "/oss") =>
  call("POST", path, { raw: form(content, options), headers: multipart })

interface Download {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly bytes: Buffer
}

const fetchUrl = (url: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  Effect.callback<Download>((resume) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk) => chunks.push(chunk))
      response.on("end", () =>
        resume(
          Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) })
        ))
    })
    request.on("error", (error) => resume(Effect.die(error)))
    request.end()
  })

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("objects", (it) => {
  it.effect("a file is uploaded, and fetched by whoever knows its address", () =>
    Effect.gen(function*() {
      const content = randomBytes(5_000_001)
      const { body, status } = yield* upload(content, { name: "../../etc/Ürgs file (1).bin" })
      assert.deepStrictEqual([status, body.code], [200, 0])
      assert.deepStrictEqual(Object.keys(body.data).toSorted(), ["md5", "url"])
      const { md5, url } = body.data as { readonly md5: string; readonly url: string }
      assert.strictEqual(md5, createHash("md5").update(content).digest("hex"))
      const base = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      assert.match(url, new RegExp(`^${base}/objects/[A-Za-z0-9]{32}/rgs_file_1_.bin$`))
      const whole = yield* fetchUrl(url)
      assert.deepInclude(whole, { status: 200 })
      assert.isTrue(whole.bytes.equals(content))
      assert.deepInclude(whole.headers, {
        "content-length": String(content.length),
        "accept-ranges": "bytes",
        etag: `"${md5}"`,
        "x-content-type-options": "nosniff",
        "content-type": "application/octet-stream"
      })
      assert.isUndefined(whole.headers["transfer-encoding"])
      const head = yield* fetchUrl(url, {}, "HEAD")
      assert.deepStrictEqual([head.status, head.headers["content-length"], head.bytes.length], [
        200,
        String(content.length),
        0
      ])
      // Only GET has ranges.
      for (const range of ["bytes=0-9", "bytes=99999999-"]) {
        assert.deepInclude(yield* fetchUrl(url, { range }, "HEAD"), { status: 200 })
      }
    }))

  it.effect("a download goes on where it stopped", () =>
    Effect.gen(function*() {
      const content = randomBytes(1000)
      const { body: { data: { md5, url } } } = yield* upload(content)
      for (
        const [range, start, end] of [
          ["bytes=0-99", 0, 99],
          ["bytes=900-", 900, 999],
          ["bytes=-100", 900, 999],
          ["bytes=990-2000", 990, 999],
          ["bytes=-5000", 0, 999]
        ] as const
      ) {
        const part = yield* fetchUrl(url, { range })
        assert.strictEqual(part.status, 206, range)
        assert.deepInclude(part.headers, {
          "content-range": `bytes ${start}-${end}/1000`,
          "content-length": String(end - start + 1)
        })
        // Devices count the bytes; they know no chunks.
        assert.isUndefined(part.headers["transfer-encoding"])
        assert.isTrue(part.bytes.equals(content.subarray(start, end + 1)))
      }
      const outside = yield* fetchUrl(url, { range: "bytes=1000-" })
      assert.deepStrictEqual([outside.status, outside.headers["content-range"]], [416, "bytes */1000"])
      assert.strictEqual(JSON.parse(outside.bytes.toString()).code, 41600)
      for (const range of ["bytes=5-1", "lines=1-2", "bytes=0-1,5-6", "bytes=-"]) {
        assert.strictEqual((yield* fetchUrl(url, { range })).status, 200, range)
      }
      assert.strictEqual((yield* fetchUrl(url, { "if-none-match": `W/"x", "${md5}"` })).status, 304)
      assert.strictEqual((yield* fetchUrl(url, { range: "bytes=0-1", "if-range": `"${md5}"` })).status, 206)
      assert.strictEqual((yield* fetchUrl(url, { range: "bytes=0-1", "if-range": `"other"` })).status, 200)
      const { headers } = yield* fetchUrl(url)
      const date = String(headers["last-modified"])
      assert.strictEqual((yield* fetchUrl(url, { range: "bytes=0-1", "if-range": date })).status, 206)
      const earlier = new Date(Date.parse(date) - 1000).toUTCString()
      assert.strictEqual((yield* fetchUrl(url, { range: "bytes=0-1", "if-range": earlier })).status, 200)
    }))

  it.effect("a download goes on in another server as well", () =>
    Effect.gen(function*() {
      const content = randomBytes(200_000)
      const { body: { data: { url } } } = yield* upload(content)
      const handle = yield* ManagementApi.fetchHandler({ readiness: {} })
      const answer = yield* Effect.promise(() => handle(new Request(url, { headers: { range: "bytes=150000-" } })))
      assert.strictEqual(answer.status, 206)
      assert.strictEqual(answer.headers.get("content-length"), "50000")
      assert.strictEqual(answer.headers.get("content-range"), "bytes 150000-199999/200000")
      const bytes = Buffer.from(yield* Effect.promise(() => answer.arrayBuffer()))
      assert.isTrue(bytes.equals(content.subarray(150_000)))
    }).pipe(Effect.scoped))

  it.effect("an object is deleted by its project only", () =>
    Effect.gen(function*() {
      const { body: { data: { url } } } = yield* upload(Buffer.from("x"))
      const key = (body: object) =>
        Effect.map(
          call("POST", "/access-keys", { body: { name: "k", ...body } }),
          ({ body }) => body.data.key as string
        )
      const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
      const remove = (authorization: string) => fetchUrl(url, { authorization }, "DELETE")
      const codeOf = ({ bytes, status }: Download) => [status, JSON.parse(bytes.toString()).code]
      assert.deepStrictEqual(codeOf(yield* remove("")), [401, 40100])
      assert.deepStrictEqual(codeOf(yield* remove(`Bearer ${yield* key({ role: "viewer" })}`)), [403, 40300])
      assert.deepStrictEqual(codeOf(yield* remove(`Bearer ${yield* key({ role: "admin", project_id })}`)), [404, 40409])
      assert.strictEqual((yield* fetchUrl(url)).status, 200)
      assert.deepStrictEqual(codeOf(yield* remove(`Bearer ${ownerKey}`)), [200, 0])
      assert.deepStrictEqual(codeOf(yield* fetchUrl(url)), [404, 40409])
      assert.deepStrictEqual(codeOf(yield* remove(`Bearer ${ownerKey}`)), [404, 40409])
    }))

  it.effect("only the whole address fetches an object", () =>
    Effect.gen(function*() {
      const { body: { data: { url } } } = yield* upload(Buffer.from("x"))
      for (const wrong of [`${url}x`, url.replace(/[^/]+$/, "other"), url.replace(/.(?=\/[^/]+$)/, "_"), `${url}/x`]) {
        assert.strictEqual((yield* fetchUrl(wrong)).status, 404, wrong)
      }
      assert.strictEqual((yield* fetchUrl(url, {}, "PUT")).status, 405)
    }))

  it.effect("a firmware file is uploaded for a product", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { body } = yield* upload(Buffer.from("firmware"), { type: "application/json" }, `/oss/ota/${product_key}`)
      assert.deepStrictEqual(body.data.size, 8)
      assert.strictEqual((yield* fetchUrl(body.data.filename)).bytes.toString(), "firmware")
      assert.strictEqual(body.data.md5, createHash("md5").update("firmware").digest("hex"))
      assert.strictEqual((yield* upload(Buffer.from("x"), {}, "/oss/ota/unknown")).body.code, 40401)
    }))

  it.effect("an upload ends when its access key is removed, and leaves nothing", () =>
    Effect.gen(function*() {
      const { body: { data: { id, key } } } = yield* call("POST", "/access-keys", {
        body: { name: "uploads", role: "operator" }
      })
      const content = form(Buffer.alloc(4 * 1024 * 1024))
      const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      const request = httpRequest(`${url}/openapi/v1/oss`, {
        method: "POST",
        headers: { ...multipart, authorization: `Bearer ${key}`, "content-length": content.length },
        agent: false
      })
      const status = new Promise<number | undefined>((resolve, reject) => {
        request.on("response", (response) => resolve(response.statusCode))
        request.on("error", reject)
      })
      const used = Effect.map(call("GET", "/quotas"), ({ body }): number => body.data.used.object_bytes)
      const before = yield* used
      request.write(content.subarray(0, content.length / 2))
      yield* eventually(used, { until: (bytes) => bytes > before })
      yield* call("DELETE", `/access-keys/${id}`)
      assert.strictEqual(yield* Effect.promise(() => status), 401)
      yield* eventually(used, { until: (bytes) => bytes === before })
      request.destroy()
    }))

  it.effect("refuses what is no form with a file", () =>
    Effect.gen(function*() {
      const answers = yield* Effect.all([
        upload(Buffer.from("x"), { field: "other" }),
        call("POST", "/oss", { body: { file: "x" } }),
        call("POST", "/oss", { raw: "x", headers: { "content-type": "multipart/form-data" } }),
        call("POST", "/oss", { raw: form(Buffer.from("x")).subarray(0, -20), headers: multipart }),
        call("POST", "/oss", { raw: "", headers: multipart })
      ])
      assert.deepStrictEqual(answers.map(({ body, status }) => [status, body.code]), [
        [400, 40001],
        [400, 40001],
        [400, 40000],
        [400, 40000],
        [400, 40000]
      ])
      assert.deepStrictEqual(Object.keys(answers[0].body.data.issues), ["file"])
    }))

  it.effect("says what of a form is too large", () =>
    Effect.gen(function*() {
      const fields = (count: number, value: string) => {
        const field = `--${boundary}\r\nContent-Disposition: form-data; name="note"\r\n\r\n${value}\r\n`
        return call("POST", "/oss", {
          raw: Buffer.concat([Buffer.from(field.repeat(count)), form(Buffer.from("x"))]),
          headers: multipart
        })
      }
      const answers = yield* Effect.all([fields(1, "x".repeat(65_537)), fields(100, "x")])
      assert.deepStrictEqual(answers.map(({ body, status }) => [status, body.code, body.message]), [
        [413, 41300, "A field of the form has more than 64 KiB; expected a file in the field file"],
        [413, 41300, "The form has more than 100 fields"]
      ])
    }))
})

const small = testApi(StorageMemory.layer, {}, {
  objects: Objects.layer.pipe(
    Layer.provide(PlatformNode.MemoryObjectStore.layer),
    Layer.provide(Layer.succeed(MaxObjectSize, 1000))
  )
})
layer(small, { excludeTestServices: true })("objects with a limit", (it) => {
  it.effect("refuses a file that is too large", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* upload(Buffer.alloc(1000))).status, 200)
      const { body, status } = yield* upload(Buffer.alloc(1001))
      assert.deepStrictEqual([status, body.code], [413, 41300])
      const large = yield* upload(Buffer.alloc(5_000_000))
      assert.deepStrictEqual([large.status, large.body.code], [413, 41300])
    }))
})
