/**
 * The configuration of the reference server, from the environment.
 */
import { inputIssues } from "@device-cloud/core"
import { Config, ConfigProvider, Effect, Option, Schema } from "effect"

/** A variable has a value that cannot be used. */
export class InvalidConfig extends Schema.TaggedError<InvalidConfig>()("InvalidConfig", {
  message: Schema.String
}) {}

/** A port; 0: any free one. */
const port = (variable: string) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })), variable)

const config = Config.all({
  httpHost: Config.String("HTTP_HOST").pipe(Config.withDefault("127.0.0.1")),
  httpPort: port("HTTP_PORT").pipe(Config.withDefault(8080)),
  mqttHost: Config.String("MQTT_HOST").pipe(Config.withDefault("127.0.0.1")),
  mqttsPort: port("MQTTS_PORT").pipe(Config.withDefault(8883)),
  mqttPort: Config.option(port("MQTT_PORT")),
  storage: Config.Literals(["postgres", "memory"], "STORAGE").pipe(Config.withDefault("postgres" as const)),
  databaseUrl: Config.option(Config.Redacted("DATABASE_URL")),
  dataDir: Config.String("DATA_DIR").pipe(Config.withDefault("./.device-cloud")),
  adminKey: Config.option(Config.Redacted("ADMIN_KEY")),
  tlsCertFile: Config.option(Config.String("TLS_CERT_FILE")),
  tlsKeyFile: Config.option(Config.String("TLS_KEY_FILE")),
  rateLimitProject: Config.option(Config.String("RATE_LIMIT_PROJECT")),
  rateLimitAddress: Config.option(Config.String("RATE_LIMIT_ADDRESS")),
  rateLimitDevice: Config.option(Config.String("RATE_LIMIT_DEVICE")),
  otlpUrl: Config.option(Config.String("OTLP_URL")),
  publicUrl: Config.option(Config.String("PUBLIC_URL")),
  strictReplay: Config.Boolean("STRICT_REPLAY").pipe(Config.withDefault(false)),
  webhookAllowPrivate: Config.Boolean("WEBHOOK_ALLOW_PRIVATE").pipe(Config.withDefault(false)),
  logLevel: Config.LogLevel("LOG_LEVEL").pipe(Config.withDefault("Info" as const))
})

/** An empty variable counts as one that is not set. */
const environment = (variables: NodeJS.ProcessEnv) =>
  ConfigProvider.fromEnv({
    env: Object.fromEntries(
      Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "")
    )
  })

/** Reads the configuration from the environment variables. Fails with `InvalidConfig`. */
export const load = Effect.gen(function*() {
  const { tlsCertFile, tlsKeyFile, ...rest } = yield* config.parse(environment(process.env)).pipe(
    Effect.mapError(({ cause, message }) =>
      new InvalidConfig({
        message: Schema.isSchemaError(cause)
          ? inputIssues(cause).map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ")
          : message
      })
    )
  )
  const certificate = Option.getOrUndefined(tlsCertFile)
  const key = Option.getOrUndefined(tlsKeyFile)
  if ((certificate === undefined) !== (key === undefined)) {
    return yield* new InvalidConfig({ message: "TLS_CERT_FILE and TLS_KEY_FILE: expected both or none" })
  }
  return {
    ...rest,
    certificateFiles: certificate === undefined || key === undefined ? undefined : { certificate, key }
  }
})

export type ServerConfig = Effect.Success<typeof load>
