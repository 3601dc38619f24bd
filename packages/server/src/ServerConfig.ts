/**
 * The configuration of the reference server, from the environment.
 */
import { inputIssues, parseTrustedProxies, type UplinkRate, UplinkRateLimits } from "@device-cloud/core"
import { Config, ConfigProvider, Duration, Effect, Option, Redacted, Result, Schema } from "effect"

/** A variable has a value that cannot be used, or what it names cannot be. */
export class InvalidConfig extends Schema.TaggedError<InvalidConfig>()("InvalidConfig", {
  message: Schema.String
}) {}

/** A port; 0: any free one. */
const port = (variable: string) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })), variable)

const count = (variable: string) => Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)), variable)

/** A whole number from 1. */
const positive = (variable: string) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 })), variable)

/** How long something is kept. */
const days = (variable: string) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 36_500 })), variable)

const config = Config.all({
  workers: Config.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })), "WORKERS").pipe(
    Config.withDefault(1)
  ),
  httpHost: Config.String("HTTP_HOST").pipe(Config.withDefault("127.0.0.1")),
  httpPort: port("HTTP_PORT").pipe(Config.withDefault(8080)),
  httpsPort: Config.option(port("HTTPS_PORT")),
  httpsClientCertificates: Config.Boolean("HTTPS_CLIENT_CERTIFICATES").pipe(Config.withDefault(false)),
  mqttHost: Config.String("MQTT_HOST").pipe(Config.withDefault("127.0.0.1")),
  mqttsPort: port("MQTTS_PORT").pipe(Config.withDefault(8883)),
  mqttPort: Config.option(port("MQTT_PORT")),
  mqttProxyProtocol: Config.Boolean("MQTT_PROXY_PROTOCOL").pipe(Config.withDefault(false)),
  drainSeconds: Config.schema(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3600 })),
    "DRAIN_SECONDS"
  ).pipe(Config.withDefault(0)),
  maxConnections: Config.option(Config.schema(Schema.Int.check(Schema.isGreaterThan(99)), "MAX_CONNECTIONS")),
  sessionExpiry: Config.Duration("SESSION_EXPIRY").pipe(Config.withDefault(Duration.days(1))),
  storage: Config.Literals(["postgres", "sqlite", "memory"], "STORAGE").pipe(Config.withDefault("postgres" as const)),
  databaseUrl: Config.option(Config.Redacted("DATABASE_URL")),
  databaseConnections: Config.schema(
    Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 1000 })),
    "DATABASE_CONNECTIONS"
  ).pipe(Config.withDefault(10)),
  objects: Config.Literals(["database", "files", "s3"], "OBJECTS").pipe(Config.withDefault("database" as const)),
  s3: Config.all({
    endpoint: Config.option(Config.String("S3_ENDPOINT")),
    bucket: Config.option(Config.String("S3_BUCKET")),
    region: Config.String("S3_REGION").pipe(Config.withDefault("us-east-1")),
    accessKeyId: Config.option(Config.String("S3_ACCESS_KEY_ID")),
    secretAccessKey: Config.option(Config.Redacted("S3_SECRET_ACCESS_KEY"))
  }),
  dataDir: Config.String("DATA_DIR").pipe(Config.withDefault("./.device-cloud")),
  adminKey: Config.option(Config.Redacted("ADMIN_KEY")),
  secretsKey: Config.option(Config.Redacted("SECRETS_KEY")),
  tlsCertFile: Config.option(Config.String("TLS_CERT_FILE")),
  tlsKeyFile: Config.option(Config.String("TLS_KEY_FILE")),
  rateLimitProject: Config.option(Config.String("RATE_LIMIT_PROJECT")),
  rateLimitAddress: Config.option(Config.String("RATE_LIMIT_ADDRESS")),
  rateLimitDevice: Config.option(Config.String("RATE_LIMIT_DEVICE")),
  uplinkRateDevice: Config.option(Config.String("UPLINK_RATE_DEVICE")),
  uplinkRateProject: Config.option(Config.String("UPLINK_RATE_PROJECT")),
  docs: Config.Boolean("DOCS").pipe(Config.withDefault(true)),
  console: Config.Boolean("CONSOLE").pipe(Config.withDefault(true)),
  metricsPort: Config.option(port("METRICS_PORT")),
  eventStreamsProject: count("EVENT_STREAMS_PROJECT").pipe(Config.withDefault(100)),
  eventStreamsTotal: count("EVENT_STREAMS_TOTAL").pipe(Config.withDefault(1000)),
  clickHouseUrl: Config.option(Config.Redacted("CLICKHOUSE_URL")),
  busUrl: Config.option(Config.String("BUS_URL")),
  natsUrl: Config.option(Config.String("NATS_URL")),
  natsCredentialsFile: Config.option(Config.String("NATS_CREDENTIALS_FILE")),
  natsCaFile: Config.option(Config.String("NATS_CA_FILE")),
  mqttBridgeUrl: Config.option(Config.Redacted("MQTT_BRIDGE_URL")),
  mqttBridgeDevicesUrl: Config.String("MQTT_BRIDGE_DEVICES_URL").pipe(Config.withDefault("")),
  mqttBridgeHooksPort: Config.option(port("MQTT_BRIDGE_HOOKS_PORT")),
  mqttBridgeHooksKey: Config.option(Config.Redacted("MQTT_BRIDGE_HOOKS_KEY")),
  otlpUrl: Config.option(Config.String("OTLP_URL")),
  publicUrl: Config.option(Config.String("PUBLIC_URL")),
  trustedProxies: Config.String("TRUSTED_PROXIES").pipe(Config.withDefault("")),
  allowPlainHttp: Config.Boolean("ALLOW_PLAIN_HTTP").pipe(Config.withDefault(false)),
  corsOrigins: Config.String("CORS_ORIGINS").pipe(Config.withDefault("")),
  strictReplay: Config.Boolean("STRICT_REPLAY").pipe(Config.withDefault(false)),
  uplinkTolerance: Config.schema(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })),
    "UPLINK_TIMESTAMP_TOLERANCE"
  ).pipe(Config.withDefault(300)),
  webhookAllowPrivate: Config.Boolean("WEBHOOK_ALLOW_PRIVATE").pipe(Config.withDefault(false)),
  webhookRate: positive("WEBHOOK_RATE").pipe(Config.withDefault(10)),
  scenePending: positive("SCENE_PENDING").pipe(Config.withDefault(10_000)),
  auditDays: days("AUDIT_DAYS").pipe(Config.withDefault(365)),
  historyDays: Config.schema(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3650 })),
    "HISTORY_DAYS"
  ).pipe(Config.withDefault(365)),
  recordDays: days("RECORD_DAYS").pipe(Config.withDefault(90)),
  feedDays: days("FEED_DAYS").pipe(Config.withDefault(7)),
  feedMaxBytes: Config.schema(
    Schema.Int.check(Schema.isBetween({ minimum: 1_000_000, maximum: 1e15 })),
    "FEED_MAX_BYTES"
  ).pipe(Config.withDefault(20e9)),
  logLevel: Config.LogLevel("LOG_LEVEL").pipe(Config.withDefault("Info" as const))
})

/** Variables such as those of `process.env`. An empty one counts as one that is not set. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>

const environment = (variables: EnvironmentVariables) =>
  ConfigProvider.fromEnv({
    env: Object.fromEntries(
      Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "")
    )
  })

/** Reads a rate such as `1000:1048576`: messages and bytes in a second. `off`: no limit. */
const readRate = Effect.fnUntraced(function*(variable: string, text: Option.Option<string>, byDefault: UplinkRate) {
  if (Option.isNone(text)) return byDefault
  if (text.value === "off") return { messages: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
  const [, messages = 0, bytes = 0] = (/^(\d{1,9}):(\d{1,12})$/.exec(text.value) ?? []).map(Number)
  if (messages > 0 && bytes > 0) return { messages, bytes }
  return yield* new InvalidConfig({
    message: `${variable}: expected messages:bytes in a second like 1000:1048576, or off, not ${text.value}`
  })
})

/** Whether this is a URL with one of the schemes, a host, and parts that can be decoded. */
export const isUrl = (text: string, ...schemes: ReadonlyArray<string>): boolean => {
  if (!URL.canParse(text)) return false
  const { host, protocol } = new URL(text)
  return schemes.includes(protocol) && host !== "" && Result.isSuccess(Result.try(() => decodeURIComponent(text)))
}

const isHttp = (text: string): boolean => isUrl(text, "http:", "https:")

/** The bucket of the objects; undefined: they are elsewhere. */
const readBucket = Effect.fnUntraced(function*({ objects, s3 }: Pick<Config.Success<typeof config>, "objects" | "s3">) {
  if (objects !== "s3") return undefined
  const given = Option.all({
    endpoint: s3.endpoint,
    bucket: s3.bucket,
    accessKeyId: s3.accessKeyId,
    secretAccessKey: s3.secretAccessKey
  })
  if (Option.isSome(given) && isHttp(given.value.endpoint)) return { ...given.value, region: s3.region }
  return yield* new InvalidConfig({
    message: "OBJECTS=s3: expected S3_ENDPOINT like https://s3.eu-central-1.amazonaws.com, S3_BUCKET, " +
      "S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY"
  })
})

/** Whether these are servers of one cluster of NATS. Its client takes no user from a URL. */
const isNats = (text: string): boolean =>
  text.split(",").every((server) => isUrl(server.trim(), "nats:", "tls:") && !server.includes("@"))

const natsLike = "nats://127.0.0.1:4222, without user and password: NATS_CREDENTIALS_FILE says who the server is"

/** Fails unless the variable is not set or has a value of the kind that is expected. */
const expectUrl = (variable: string, url: Option.Option<string>, isRight: (text: string) => boolean, like: string) =>
  Option.isNone(url) || isRight(url.value)
    ? Effect.void
    : Effect.fail(new InvalidConfig({ message: `${variable}: expected a URL like ${like}` }))

/** Whether a browser would write the origin of a page like this. */
const isOrigin = (text: string): boolean => isHttp(text) && new URL(text).origin === text

const fromEnv = Effect.fnUntraced(function*(variables: EnvironmentVariables) {
  const { corsOrigins, tlsCertFile, tlsKeyFile, trustedProxies, uplinkRateDevice, uplinkRateProject, ...rest } =
    yield* config
      .parse(environment(variables)).pipe(
        Effect.mapError(({ cause, message }) =>
          new InvalidConfig({
            message: Schema.isSchemaError(cause)
              ? inputIssues(cause).map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ")
              : message
          })
        )
      )
  if (rest.workers > 1 && rest.storage !== "postgres") {
    return yield* new InvalidConfig({ message: `WORKERS: workers share a database; STORAGE=${rest.storage} allows 1` })
  }
  if (Duration.isNegative(rest.sessionExpiry)) {
    return yield* new InvalidConfig({ message: "SESSION_EXPIRY: expected a time such as 1 day, 0 or longer" })
  }
  const certificate = Option.getOrUndefined(tlsCertFile)
  const key = Option.getOrUndefined(tlsKeyFile)
  if ((certificate === undefined) !== (key === undefined)) {
    return yield* new InvalidConfig({ message: "TLS_CERT_FILE and TLS_KEY_FILE: expected both or none" })
  }
  const proxies = parseTrustedProxies(trustedProxies === "" ? [] : trustedProxies.split(","))
  if (Result.isFailure(proxies)) {
    return yield* new InvalidConfig({
      message: `TRUSTED_PROXIES: expected addresses or networks such as 10.0.0.0/8, not ${proxies.failure}`
    })
  }
  if (rest.mqttProxyProtocol && proxies.success.length === 0) {
    return yield* new InvalidConfig({ message: "MQTT_PROXY_PROTOCOL: TRUSTED_PROXIES has to name the proxies" })
  }
  const clickHouse = Option.map(rest.clickHouseUrl, Redacted.value)
  yield* expectUrl("CLICKHOUSE_URL", clickHouse, isHttp, "http://user:password@127.0.0.1:8123/database")
  yield* expectUrl("NATS_URL", rest.natsUrl, isNats, natsLike)
  yield* expectUrl("BUS_URL", rest.busUrl, isNats, natsLike)
  yield* expectUrl("OTLP_URL", rest.otlpUrl, isHttp, "http://127.0.0.1:4318")
  yield* expectUrl("PUBLIC_URL", rest.publicUrl, isHttp, "https://iot.example.com")
  const origins = corsOrigins === "" ? [] : corsOrigins.split(",").map((origin) => origin.trim())
  const misfit = origins.find((origin) => !isOrigin(origin))
  if (misfit !== undefined) {
    return yield* new InvalidConfig({
      message: `CORS_ORIGINS: expected origins such as https://console.example.com, not ${misfit}`
    })
  }
  const byDefault = yield* UplinkRateLimits
  return {
    ...rest,
    s3: yield* readBucket(rest),
    uplinkRates: {
      device: yield* readRate("UPLINK_RATE_DEVICE", uplinkRateDevice, byDefault.device),
      project: yield* readRate("UPLINK_RATE_PROJECT", uplinkRateProject, byDefault.project)
    },
    corsOrigins: origins,
    trustedProxies: proxies.success,
    certificateFiles: certificate === undefined || key === undefined ? undefined : { certificate, key }
  }
})

/** The settings of a server; docs/operations has their meaning, their units and their bounds. */
export interface ServerConfig extends Effect.Success<ReturnType<typeof fromEnv>> {}

export const ServerConfig = {
  /**
   * Reads a configuration from environment variables; what they do not say has its default. Fails with
   * `InvalidConfig`, which names the variable and what it expects.
   *
   * @example
   * const config = ServerConfig.fromEnv({ STORAGE: "memory", HTTP_PORT: "0", MQTTS_PORT: "0" })
   */
  fromEnv
}
