import { ownerKey } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { fileURLToPath } from "node:url"
import { explain } from "../src/Explanation.ts"
import { ServerConfig } from "../src/ServerConfig.ts"
import { startWith, temporaryDirectory } from "./TestServer.ts"

/** A file that is neither certificate nor credentials. */
const wrongFile = fileURLToPath(import.meta.url)

const refused = (output: string, variable: string) => {
  assert.include(output, `Device Cloud cannot run. ${variable}: `)
  assert.notInclude(output, "hunter2")
  assert.strictEqual(output.trim().split("\n").length, 1)
}

type WrongSettings = ReadonlyArray<readonly [string, Readonly<Record<string, string>>]>

it.live.each([
  ["HTTP_PORT", { HTTP_PORT: "x" }],
  ["HTTP_HOST, HTTP_PORT", { HTTP_HOST: "192.0.2.1" }],
  ["ADMIN_KEY", { ADMIN_KEY: "dck_short_key" }],
  ["SECRETS_KEY", { STORAGE: "postgres", DATABASE_URL: "postgres://127.0.0.1:1/none", SECRETS_KEY: "hunter2" }],
  ["TLS_CERT_FILE", { TLS_CERT_FILE: "/nowhere", TLS_KEY_FILE: "/nowhere" }],
  ["DATA_DIR, or TLS_CERT_FILE and TLS_KEY_FILE in its place", { DATA_DIR: wrongFile, ADMIN_KEY: ownerKey }],
  ["MQTT_BRIDGE_URL", { MQTT_BRIDGE_URL: "amqp://ada:hunter2%@127.0.0.1" }],
  ["NATS_CREDENTIALS_FILE", { BUS_URL: "nats://127.0.0.1:1", NATS_CREDENTIALS_FILE: wrongFile }],
  ["NATS_CA_FILE", { NATS_URL: "tls://127.0.0.1:1", NATS_CA_FILE: wrongFile }],
  ["DATABASE_URL", { STORAGE: "postgres", DATABASE_URL: "postgres://user:hunter2@127.0.0.1:1/none" }]
] as WrongSettings)(
  "does not start with a wrong %s, and says so",
  ([variable, env]) =>
    Effect.gen(function*() {
      const ended = yield* Effect.flip(startWith({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, ...env }))
      assert.strictEqual(ended._tag, "ServerEnded")
      if (ended._tag !== "ServerEnded") return
      assert.strictEqual(ended.exitCode, 1)
      refused(ended.output, variable)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live.each([
  ["HTTP_HOST, HTTP_PORT", { HTTP_HOST: "192.0.2.1" }],
  ["RATE_LIMIT_PROJECT, RATE_LIMIT_ADDRESS, RATE_LIMIT_DEVICE", { RATE_LIMIT_DEVICE: "20" }]
] as WrongSettings)(
  "makes no admin key when it cannot run for a wrong %s: the start after it prints one",
  ([variable, env]) =>
    Effect.gen(function*() {
      const settings = { STORAGE: "memory", DATA_DIR: yield* temporaryDirectory }
      const ended = yield* Effect.flip(startWith({ ...settings, ...env }))
      refused(ended._tag === "ServerEnded" ? ended.output : ended.message, variable)
      assert.isDefined((yield* startWith(settings)).adminKey)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect.each([
  ["HTTP_PORT", { HTTP_PORT: "65536" }],
  ["MQTT_PORT", { MQTT_PORT: "-1" }],
  ["SESSION_EXPIRY", { SESSION_EXPIRY: "-1 day" }],
  ["STORAGE", { STORAGE: "redis" }],
  ["LOG_LEVEL", { LOG_LEVEL: "loud" }],
  ["PUBLIC_URL", { PUBLIC_URL: "iot.example.com" }],
  ["OTLP_URL", { OTLP_URL: "grpc://127.0.0.1:4317" }],
  ["NATS_URL", { NATS_URL: "http://ada:hunter2@127.0.0.1:4222" }],
  ["NATS_URL", { NATS_URL: "nats://127.0.0.1:4222,nats://ada:hunter2@127.0.0.1:4223" }],
  ["BUS_URL", { BUS_URL: "nats://hunter2@127.0.0.1:4222" }],
  ["BUS_URL", { BUS_URL: "nats://127.0.0.1:4222,127.0.0.2:4222" }],
  ["BUS_URL", { BUS_URL: "nats:127.0.0.1" }],
  ["CLICKHOUSE_URL", { CLICKHOUSE_URL: "ada:hunter2@127.0.0.1" }],
  ["CLICKHOUSE_URL", { CLICKHOUSE_URL: "http://ada:hunter2%@127.0.0.1/history" }],
  ["TLS_CERT_FILE and TLS_KEY_FILE", { TLS_CERT_FILE: "/nowhere" }]
] as WrongSettings)(
  "takes no wrong %s, and says so",
  ([variable, env]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ServerConfig.fromEnv({ STORAGE: "memory", DATA_DIR: "/nowhere", ...env }))
      refused(`Device Cloud cannot run. ${explain(error)}`, variable)
    })
)
