/**
 * The reference server: core, storage, broker and API in one layer.
 */
import { AccessKeys, AllowPrivateWebhooks, DeviceCloud, Objects, StoreHealth } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import { DevelopmentCertificate, MqttServer, MqttWebSocket } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import { EmbeddedPostgres } from "@device-cloud/testing"
import { Console, Effect, Layer, Logger, Option, References } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { Otlp } from "effect/observability"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import * as AdminKey from "./AdminKey.ts"
import { explain } from "./Explanation.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"
import { answerUnservedRequests } from "./UnservedRequests.ts"

/** Fails with `InvalidConfig` that names the variables to check when a part cannot be built. */
const blame = <E>(variables: string, explain: (error: E) => string) => <A, R>(layer: Layer.Layer<A, E, R>) =>
  layer.pipe(
    Layer.catch((error) =>
      Layer.unwrap<A, never, never, InvalidConfig, never>(
        Effect.fail(new InvalidConfig({ message: `${variables}: ${explain(error)}` }))
      )
    )
  )

const storage = (
  config: ServerConfig
): Layer.Layer<DeviceCloud.Stores | StoreHealth, InvalidConfig> => {
  if (config.storage === "memory") return StorageMemory.layer
  if (Option.isSome(config.databaseUrl)) {
    return StoragePg.layer({ url: config.databaseUrl.value }).pipe(
      blame("DATABASE_URL", ({ message }) => message)
    )
  }
  return Layer.unwrap(
    Effect.map(EmbeddedPostgres.make({ directory: join(config.dataDir, "postgres") }), StoragePg.layer)
  ).pipe(blame("DATA_DIR", explain))
}

/** Objects are files in the data directory, also when the database is elsewhere. */
const objects = (config: ServerConfig) =>
  config.storage === "memory"
    ? PlatformNode.MemoryObjectStore.layer
    : PlatformNode.FileObjectStore.layer({ directory: join(config.dataDir, "objects") }).pipe(
      blame("DATA_DIR", ({ cause }) => String(cause))
    )

const certificate = Effect.fnUntraced(function*(config: ServerConfig) {
  const files = config.certificateFiles
  if (files === undefined) return yield* DevelopmentCertificate.loadOrMake(join(config.dataDir, "tls"))
  const read = (variable: string, file: string) =>
    Effect.tryPromise({
      try: () => readFile(file, "utf8"),
      catch: (cause) => new InvalidConfig({ message: `${variable}: ${file} cannot be read (${String(cause)})` })
    })
  return {
    certificate: yield* read("TLS_CERT_FILE", files.certificate),
    key: yield* read("TLS_KEY_FILE", files.key)
  }
})

const broker = (config: ServerConfig) =>
  Layer.unwrap(Effect.map(certificate(config), ({ certificate, key }) =>
    MqttServer.layer({
      host: config.mqttHost,
      tls: { port: config.mqttsPort, certificate, key },
      ...Option.isSome(config.mqttPort) ? { tcp: { port: config.mqttPort.value } } : {}
    }).pipe(blame("MQTT_HOST, MQTTS_PORT, MQTT_PORT, or TLS_CERT_FILE, TLS_KEY_FILE", ({ message }) => message))))

/** How long a request may take to arrive, milliseconds: files are large and networks slow. */
const uploadTime = 3_600_000

/** How long requests may still run when the server stops. */
const httpGrace = "3 seconds"

const httpServer = (config: ServerConfig) =>
  Layer.unwrap(Effect.gen(function*() {
    const server = createServer({ requireHostHeader: false, requestTimeout: uploadTime })
    answerUnservedRequests(server)
    yield* MqttWebSocket.attach(server)
    // After the grace, the server closes the connections that are still open.
    const cutOff = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections())))
    const { httpHost: host, httpPort: port } = config
    const listening = PlatformNode.HttpServer.layer(() => server, { host, port, gracefulShutdownTimeout: httpGrace })
      .pipe(
        blame("HTTP_HOST, HTTP_PORT", ({ cause }) => `cannot listen on ${host}, port ${port} (${String(cause)})`)
      )
    return cutOff.pipe(Layer.provideMerge(listening))
  }))

const api = ({ publicUrl, rateLimitAddress, rateLimitDevice, rateLimitProject, strictReplay }: ServerConfig) =>
  Layer.unwrap(Effect.gen(function*() {
    const store = yield* StoreHealth
    const { address } = yield* HttpServer.HttpServer
    return ManagementApi.layer({
      // The broker listens for as long as this layer lives.
      readiness: { storage: store.check, mqtt: Effect.void },
      strictReplay,
      publicUrl: Option.getOrElse(publicUrl, () => HttpServer.formatAddress(address)),
      rateLimits: {
        project: Option.getOrUndefined(rateLimitProject),
        address: Option.getOrUndefined(rateLimitAddress),
        device: Option.getOrUndefined(rateLimitDevice)
      }
    }).pipe(
      blame("RATE_LIMIT_PROJECT, RATE_LIMIT_ADDRESS, RATE_LIMIT_DEVICE", ({ message }) => message)
    )
  }))

/** Sends traces, metrics and logs to a collector of OpenTelemetry. */
const telemetry = ({ otlpUrl }: ServerConfig) =>
  Option.match(otlpUrl, {
    onNone: () => Layer.empty,
    onSome: (baseUrl) =>
      Otlp.layerJson({ baseUrl, resource: { serviceName: "device-cloud" } }).pipe(
        Layer.provide(FetchHttpClient.layer)
      )
  })

const adminKey = (config: ServerConfig) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const accessKeys = yield* AccessKeys
    const { key, origin } = Option.isSome(config.adminKey)
      ? { key: config.adminKey.value, origin: "ADMIN_KEY" }
      : yield* AdminKey.loadOrMake(config.dataDir).pipe(
        Effect.mapError((error) => new InvalidConfig({ message: `DATA_DIR: ${explain(error)}` }))
      )
    yield* accessKeys.setOwner(key).pipe(
      Effect.catchTag("MalformedAccessKey", ({ message }) => new InvalidConfig({ message: `${origin}: ${message}` }))
    )
  }))

/** Prints one line that says where the server can be reached. */
const announce = Layer.effectDiscard(Effect.gen(function*() {
  const { mqtt = null, mqtts } = yield* MqttServer
  const http = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  yield* Console.log(JSON.stringify({ event: "ready", http, mqtts, mqtt }))
}))

/** The server runs while this layer lives. Fails with `InvalidConfig` that says what to change. */
export const layer = (config: ServerConfig) =>
  announce.pipe(
    Layer.provide(api(config)),
    Layer.provide(httpServer(config)),
    Layer.provideMerge(broker(config)),
    Layer.provideMerge(adminKey(config)),
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(storage(config)),
    Layer.provideMerge(Layer.provide(Objects.layer, objects(config))),
    Layer.provide(PlatformNode.layer),
    Layer.provide(telemetry(config)),
    Layer.provide(Layer.succeed(AllowPrivateWebhooks, config.webhookAllowPrivate)),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, config.logLevel)),
    Layer.provide(Layer.succeed(Logger.LogToStderr, true))
  )
