/**
 * The management API on a real socket, and a client that can send anything.
 */
import { AccessKeys, DeviceCloud, Objects, StoreHealth } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import * as PlatformNode from "@device-cloud/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { createServer, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"

/** An access key of role owner. */
export const ownerKey = `dck_${"o".repeat(12)}_${"0".repeat(43)}`

const ownerLayer = Layer.effectDiscard(
  Effect.flatMap(AccessKeys, (accessKeys) => accessKeys.setOwner(Redacted.make(ownerKey)))
)

/** Options of the API, but for the readiness check: that of the stores. */
export type ApiOptions = Omit<ManagementApi.Options, "readiness">

const api = (options: ApiOptions) =>
  Layer.unwrap(
    Effect.map(StoreHealth, (store) => ManagementApi.layer({ ...options, readiness: { storage: store.check } }))
  )

/** The management API of a cloud that is there, on a free port of loopback, with {@link ownerKey} as the key of its owner. */
export const apiServer = (options: ApiOptions = {}) =>
  api(options).pipe(
    Layer.provideMerge(
      PlatformNode.HttpServer.layer(createServer, {
        host: "127.0.0.1",
        port: 0,
        // Nobody waits for the streams of events that somebody still reads: they end with the cloud.
        gracefulShutdownTimeout: 0
      })
    ),
    Layer.provideMerge(ownerLayer)
  )

/**
 * A whole cloud on the given stores, with its management API on a free port of
 * loopback and {@link ownerKey} as the key of its owner. Everything in it is at
 * hand for the test as well. Default: objects in memory.
 */
export const testApi = <A extends DeviceCloud.Stores | StoreHealth, E>(
  stores: Layer.Layer<A, E>,
  options: ApiOptions = {},
  { objects = Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer)) } = {}
) =>
  apiServer(options).pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(objects),
    Layer.provideMerge(stores),
    Layer.provideMerge(PlatformNode.layer)
  )

/** What came back. */
export interface ApiResponse {
  /** The HTTP status. */
  readonly status: number
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** The body as it came. */
  readonly text: string
  /** The envelope. Of a response that is not JSON: code -1 and the text as message. */
  readonly body: {
    readonly code: number
    readonly message: string
    // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into whatever came back
    readonly data?: any
  }
}

/** What is sent. */
export interface CallOptions {
  /** The access key; null: none. Default: the owner's. */
  readonly key?: string | null
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, in place of `body`. */
  readonly raw?: string | Buffer
  /** In addition to those that the other options make, and over them. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Calls the API of any server, over connections that are kept for further calls.
 * `path` is sent as it is, below `/openapi/v1` unless it starts with `//`. Dies if
 * no response comes back.
 */
export const callTo = (
  url: string,
  method: string,
  path: string,
  options: CallOptions = {}
): Effect.Effect<ApiResponse> =>
  Effect.callback((resume) => {
    const { key = ownerKey } = options
    const content = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
    const request = (url.startsWith("https:") ? httpsRequest : httpRequest)(url, {
      method,
      path: path.startsWith("//") ? path.slice(1) : `/openapi/v1${path}`,
      headers: {
        ...key === null ? {} : { authorization: `Bearer ${key}` },
        ...content === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(content) },
        ...options.headers
      }
    }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk) => chunks.push(chunk))
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = method !== "HEAD" && response.headers["content-type"]?.startsWith("application/json") === true
        resume(Effect.sync(() => ({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          body: isJson ? JSON.parse(text) : { code: -1, message: text }
        })))
      })
      response.on("error", (error) => resume(Effect.die(error)))
    })
    request.on("error", (error) => {
      // The server has closed a connection that waited for its next request: this one has not reached it.
      const isStale = request.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET"
      resume(isStale ? callTo(url, method, path, options) : Effect.die(error))
    })
    request.end(content)
    return Effect.sync(() => request.destroy())
  })

/** {@link callTo} the server of the test. */
export const call = (
  method: string,
  path: string,
  options: CallOptions = {}
): Effect.Effect<ApiResponse, never, HttpServer.HttpServer> =>
  Effect.flatMap(
    HttpServer.HttpServer,
    ({ address }) => callTo(HttpServer.formatAddress(address), method, path, options)
  )

/** The smallest body that makes a product: a direct Wi-Fi device whose reports are checked weakly. */
export const productBody = {
  name: "Thermometer",
  node_type: "direct",
  network_type: "wifi",
  validate_type: "weak",
  data_format: "json",
  auth_type: "secret"
} as const

/** Creates a product: {@link productBody} with other fields. Returns its `product_info`. */
export const createProduct = (body: object = {}, options: CallOptions = {}) =>
  Effect.map(
    call("POST", "/products", { ...options, body: { ...productBody, ...body } }),
    ({ body }) => body.data.product_info as Readonly<Record<string, string>> & { readonly product_key: string }
  )

/** Creates a device of a product. Returns its triple and id, by their names on the wire. */
export const createDevice = (productKey: string, body?: object) =>
  Effect.map(
    call("POST", `/products/${productKey}/things`, { body }),
    ({ body }) => body.data as Readonly<Record<string, string>> & { readonly device_id: string }
  )
