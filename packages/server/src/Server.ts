/**
 * The reference server: core, storage, broker and API in one layer.
 */
import {
  AccessKeys,
  AllowPrivateWebhooks,
  AuditDays,
  DeviceCloud,
  FeedLimits,
  HistoryDays,
  type NodeBus,
  type Nodes,
  Objects,
  RecordDays,
  SceneLimits,
  StoreHealth,
  TrustedProxies,
  UplinkRateLimits,
  UplinkTolerance,
  WebhookLimits
} from "@device-cloud/core"
import { Console } from "@device-cloud/console"
import { ManagementApi } from "@device-cloud/http"
import {
  CertificateFiles,
  DevelopmentCertificate,
  MqttServer,
  MqttWebSocket,
  type TlsOptions
} from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import { Context, Effect, Layer, Option, Stream } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { Otlp } from "effect/observability"
import { createServer } from "node:http"
import { join } from "node:path"
import * as AdminKey from "./AdminKey.ts"
import { Draining } from "./Draining.ts"
import { blame, explain } from "./Explanation.ts"
import { loaded } from "./LoadedPart.ts"
import * as Logging from "./Logging.ts"
import * as ObjectStorage from "./ObjectStorage.ts"
import { openFiles, shareOf } from "./OpenFiles.ts"
import * as SecureHttp from "./SecureHttp.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"
import * as Storage from "./Storage.ts"
import { answerUnservedRequests } from "./UnservedRequests.ts"
import * as WorkerChannel from "./WorkerChannel.ts"

/** The certificate, and its renewals if it is in files. */
class Certificate extends Context.Service<Certificate, Pick<TlsOptions, "certificate" | "key" | "renewals">>()(
  "@device-cloud/server/Certificate"
) {
  static readonly layer = (config: ServerConfig) => Layer.effect(Certificate, loadCertificate(config))
}

const loadCertificate = Effect.fnUntraced(function*(config: ServerConfig) {
  const files = config.certificateFiles
  if (files === undefined) {
    return yield* DevelopmentCertificate.loadOrMake(join(config.dataDir, "tls")).pipe(
      Effect.mapError((error) =>
        new InvalidConfig({ message: `DATA_DIR, or TLS_CERT_FILE and TLS_KEY_FILE in its place: ${explain(error)}` })
      )
    )
  }
  const current = yield* CertificateFiles.load(files).pipe(
    Effect.mapError(({ cause, file }) => {
      const variable = file === files.certificate ? "TLS_CERT_FILE" : "TLS_KEY_FILE"
      return new InvalidConfig({ message: `${variable}: ${file} cannot be read (${String(cause)})` })
    })
  )
  // One look at the files, and one line in the log, for both listeners.
  const renewals = yield* Stream.share(CertificateFiles.renewals(files, current), { capacity: 1, replay: 1 })
  return { ...current, renewals }
})

/** How many connections this process takes. HTTP and HTTPS take half each of what is for HTTP. */
const connections = ({ httpsPort, maxConnections, workers }: ServerConfig) => {
  const shares = shareOf(openFiles())
  const mqtt = Option.match(maxConnections, {
    onNone: () => shares.mqtt,
    onSome: (ofAll) => Math.ceil(ofAll / workers)
  })
  const http = Math.min(mqtt, shares.http)
  return { mqtt, http: Option.isSome(httpsPort) ? Math.ceil(http / 2) : http }
}

const broker = (config: ServerConfig) =>
  Layer.unwrap(Effect.map(Certificate, (certificate) =>
    MqttServer.layer({
      host: config.mqttHost,
      tls: { port: config.mqttsPort, clientCertificates: true, ...certificate },
      proxyProtocol: config.mqttProxyProtocol,
      limits: { connections: connections(config).mqtt, sessionExpiry: config.sessionExpiry },
      ...Option.isSome(config.mqttPort) ? { tcp: { port: config.mqttPort.value } } : {}
    }).pipe(blame("MQTT_HOST, MQTTS_PORT, MQTT_PORT, or TLS_CERT_FILE, TLS_KEY_FILE", ({ message }) => message))))

/** Milliseconds. Files are large and networks slow; bodies that are not streamed have a limit of their own. */
const httpTimes = { headersTimeout: 15_000, requestTimeout: 3_600_000, connectionsCheckingInterval: 5000 } as const

/** How long requests may still run when the server stops. */
const httpGrace = "3 seconds"

/** The URL of the API over TLS; undefined without `HTTPS_PORT`. */
class SecureUrl extends Context.Service<SecureUrl, { readonly https: string | undefined }>()(
  "@device-cloud/server/SecureUrl"
) {}

const httpServer = (config: ServerConfig) =>
  Layer.unwrap(Effect.gen(function*() {
    const serverOptions = { ...PlatformNode.HttpServer.serverOptions, requireHostHeader: false, ...httpTimes }
    const server = createServer(serverOptions)
    const draining = yield* Draining
    answerUnservedRequests(server, draining)
    yield* MqttWebSocket.attach(server)
    // After the grace, the server closes the connections that are still open.
    const cutOff = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections())))
    const { httpHost: host, httpPort: port, httpsClientCertificates: clientCertificates, httpsPort } = config
    const limits = { connections: connections(config).http }
    const listening = PlatformNode.HttpServer.layer(
      () => server,
      { host, port, gracefulShutdownTimeout: httpGrace },
      limits
    ).pipe(
      blame("HTTP_HOST, HTTP_PORT", ({ cause }) => `cannot listen on ${host}, port ${port} (${String(cause)})`)
    )
    const certificate = yield* Certificate
    const secure = Layer.effect(
      SecureUrl,
      Option.match(httpsPort, {
        onNone: () => Effect.succeed({ https: undefined }),
        onSome: (port) =>
          Effect.map(
            SecureHttp.listen(server, {
              ...certificate,
              ...limits,
              host,
              port,
              clientCertificates,
              server: serverOptions
            }),
            (https) => ({ https })
          )
      })
    )
    return Layer.merge(secure, cutOff).pipe(Layer.provideMerge(listening))
  }))

/** The broker listens for as long as this layer lives, until it drains. */
const readiness = Effect.gen(function*() {
  const { check } = yield* StoreHealth
  const draining = yield* Draining
  return {
    storage: check,
    mqtt: Effect.suspend(() => draining.hasBegun() ? Effect.fail("The server stops") : Effect.void)
  }
})

const api = (
  {
    allowPlainHttp,
    console,
    corsOrigins,
    docs,
    eventStreamsProject,
    eventStreamsTotal,
    metricsPort,
    publicUrl,
    rateLimitAddress,
    rateLimitDevice,
    rateLimitProject,
    strictReplay,
    workers
  }: ServerConfig
) =>
  Layer.unwrap(Effect.gen(function*() {
    const { address } = yield* HttpServer.HttpServer
    return ManagementApi.layer({
      readiness: yield* readiness,
      docs: docs && Option.isNone(metricsPort),
      // Those of one worker would be a part that nobody has asked for.
      metrics: Option.isNone(metricsPort) && workers === 1,
      eventStreams: {
        project: Math.ceil(eventStreamsProject / workers),
        total: Math.ceil(eventStreamsTotal / workers)
      },
      strictReplay,
      secureDevices: !allowPlainHttp,
      corsOrigins,
      ...console ? { pages: Console.pages } : {},
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

/**
 * Health, metrics and documentation on a port of their own, if the configuration
 * has one. A worker has them for its supervisor, on a port that it shares with no
 * other worker.
 */
const operations = ({ docs, httpHost, metricsPort, workers }: ServerConfig) => {
  const host = workers === 1 ? httpHost : "127.0.0.1"
  return Option.match(metricsPort, {
    onNone: () => Layer.empty,
    onSome: (port) =>
      Layer.unwrap(Effect.gen(function*() {
        const http = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
        yield* WorkerChannel.announceOperations(http)
        return ManagementApi.layerOperations({ readiness: yield* readiness, docs })
      })).pipe(
        Layer.provide(
          PlatformNode.HttpServer.layer(createServer, {
            host,
            port,
            exclusive: workers > 1,
            gracefulShutdownTimeout: httpGrace
          }).pipe(
            blame(
              "HTTP_HOST, METRICS_PORT",
              ({ cause }) => `cannot listen on ${host}, port ${port} (${String(cause)})`
            )
          )
        )
      )
  })
}

/** Sends traces, metrics and logs to a collector of OpenTelemetry. */
const telemetry = ({ otlpUrl }: ServerConfig) =>
  Option.match(otlpUrl, {
    onNone: () => Layer.empty,
    onSome: (baseUrl) =>
      Otlp.layerJson({ baseUrl, resource: { serviceName: "device-cloud" } }).pipe(
        Layer.provide(FetchHttpClient.layer)
      )
  })

/** The owner's key, which counts while the server starts. */
class OwnersKey extends Context.Service<OwnersKey, {
  /** Prints a key that this start has made. */
  readonly tell: Effect.Effect<void>
}>()("@device-cloud/server/OwnersKey") {
  static readonly layer = (config: ServerConfig) => Layer.effect(OwnersKey, setOwnersKey(config))
}

const setOwnersKey = Effect.fnUntraced(function*({ adminKey, dataDir }: ServerConfig) {
  const { key, origin, tell } = Option.isSome(adminKey)
    ? { key: adminKey.value, origin: "ADMIN_KEY", tell: Effect.void }
    : yield* AdminKey.loadOrMake(dataDir).pipe(
      Effect.mapError((error) => new InvalidConfig({ message: `DATA_DIR: ${explain(error)}` }))
    )
  yield* AccessKeys.use((accessKeys) => accessKeys.setOwner(key)).pipe(
    Effect.catchTag("MalformedAccessKey", ({ message }) => new InvalidConfig({ message: `${origin}: ${message}` }))
  )
  return { tell }
})

/** What waits comes back about once a second, so as many may be under way as may be sent in a second. */
const sceneLimits = ({ scenePending: pending, webhookRate: rate }: ServerConfig) =>
  Layer.merge(
    Layer.succeed(SceneLimits, { ...SceneLimits.defaultValue(), pending }),
    Layer.succeed(WebhookLimits, { rate, burst: 5 * rate, atOnce: rate })
  )

/** How long the server keeps what. */
const retention = ({ auditDays, feedDays, feedMaxBytes, historyDays, recordDays }: ServerConfig) =>
  Layer.mergeAll(
    Layer.succeed(AuditDays, auditDays),
    Layer.succeed(FeedLimits, { days: feedDays, maxBytes: feedMaxBytes }),
    Layer.succeed(HistoryDays, historyDays),
    Layer.succeed(RecordDays, recordDays)
  )

const brokerInFront = (config: ServerConfig) =>
  Option.match(config.mqttBridgeUrl, {
    onNone: () => Layer.empty,
    onSome: (url) => loaded(async () => (await import("./BrokerInFront.ts")).layer(config, url))
  })

/** The events of all projects on NATS, if the configuration has a server for them. */
const natsEvents = (config: ServerConfig) =>
  Option.match(config.natsUrl, {
    onNone: () => Layer.empty,
    onSome: (url) => loaded(async () => (await import("./Nats.ts")).layerEvents(config, url))
  })

/** What servers tell each other: on NATS, or by the bus of the storage. */
const natsBus = (config: ServerConfig): Layer.Layer<NodeBus, InvalidConfig, NodeBus> =>
  Option.match(config.busUrl, {
    onNone: () => Layer.effectContext(Effect.context<NodeBus>()),
    onSome: (url) => loaded(async () => (await import("./Nats.ts")).layerBus(config, url))
  })

/** Says where the server can be reached. Its end is the first that happens when the server stops. */
const announce = Layer.effectDiscard(Effect.gen(function*() {
  yield* (yield* OwnersKey).tell
  const context = yield* Effect.context<MqttServer | Nodes>()
  const { run } = yield* Draining
  yield* Effect.addFinalizer(() => Effect.provide(run, context))
  const { mqtt = null, mqtts } = yield* MqttServer
  const http = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  const { https } = yield* SecureUrl
  // The broker of this server always listens for TLS.
  yield* WorkerChannel.announceReady({ event: "ready", http, https, mqtts: mqtts!, mqtt })
}))

/**
 * The server runs in this process while this layer lives; `workers` of `config` are
 * started by `run` alone. It prints a line of JSON on standard output when it can be
 * reached. Fails with `InvalidConfig` that says what to change.
 *
 * @example
 * const program = ServerConfig.fromEnv(process.env).pipe(
 *   Effect.flatMap((config) => Layer.launch(Server.layer(config)))
 * )
 */
export const layer = (config: ServerConfig) =>
  announce.pipe(
    Layer.provide([api(config), operations(config), brokerInFront(config)]),
    Layer.provide(httpServer(config)),
    Layer.provideMerge(broker(config)),
    Layer.provide(Certificate.layer(config)),
    Layer.provide(Draining.layer(config)),
    Layer.provideMerge(Layer.merge(OwnersKey.layer(config), WorkerChannel.layerEndedNodes)),
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(Layer.provide(Objects.layer, ObjectStorage.layer(config))),
    Layer.provideMerge(natsEvents(config)),
    Layer.provideMerge(Layer.provideMerge(natsBus(config), Storage.layer(config))),
    Layer.provide(PlatformNode.layer),
    Layer.provide(telemetry(config)),
    Layer.provide(Layer.succeed(UplinkTolerance, config.uplinkTolerance * 1000)),
    Layer.provide(Layer.succeed(TrustedProxies, config.trustedProxies)),
    Layer.provide(Layer.succeed(UplinkRateLimits, config.uplinkRates)),
    Layer.provide(Layer.succeed(AllowPrivateWebhooks, config.webhookAllowPrivate)),
    Layer.provide(sceneLimits(config)),
    Layer.provide(retention(config)),
    Layer.provide(Logging.layer(config))
  )
