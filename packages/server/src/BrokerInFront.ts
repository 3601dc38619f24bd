/**
 * Devices at a RabbitMQ in front of the server.
 */
import type {
  Broadcasts,
  ConnectRefusals,
  DeviceAuthenticator,
  DeviceMethods,
  DeviceSessions,
  HistoryStore,
  TraceRecorder,
  Uplink,
  UplinkRates,
  UplinkTrace
} from "@device-cloud/core"
import { BrokerHooks, MqttBridge, RabbitMq } from "@device-cloud/mqtt-bridge"
import * as PlatformNode from "@device-cloud/platform-node"
import { Effect, Layer, Option, Redacted } from "effect"
import type { HttpServer } from "effect/http"
import { createServer } from "node:http"
import { InvalidConfig, isUrl, type ServerConfig } from "./ServerConfig.ts"

/** Characters of the key that the broker shows. */
const minKeyLength = 32

/** Carries devices while it lives, and answers the questions of the broker on a port of its own. */
export const layer = (
  config: ServerConfig,
  url: Redacted.Redacted
): Layer.Layer<
  never,
  InvalidConfig,
  | Broadcasts
  | ConnectRefusals
  | DeviceAuthenticator
  | DeviceMethods
  | DeviceSessions
  | HistoryStore
  | TraceRecorder
  | Uplink
  | UplinkRates
  | UplinkTrace
> =>
  Layer.unwrap(Effect.gen(function*() {
    const { httpHost: host, mqttBridgeDevicesUrl: mqttUrl, mqttBridgeHooksKey, mqttBridgeHooksPort } = config
    const refuse = (message: string) => new InvalidConfig({ message })
    if (!isUrl(Redacted.value(url), "amqp:", "amqps:")) {
      return yield* refuse("MQTT_BRIDGE_URL: expected amqp://user:password@host:5672/vhost, or amqps:")
    }
    if (!isUrl(mqttUrl, "mqtt:", "mqtts:")) {
      return yield* refuse("MQTT_BRIDGE_DEVICES_URL: expected where devices connect, like mqtt://host:1883")
    }
    const port = yield* Option.match(mqttBridgeHooksPort, {
      onNone: () => refuse("MQTT_BRIDGE_HOOKS_PORT: expected a port"),
      onSome: Effect.succeed
    })
    const credential = Option.getOrUndefined(mqttBridgeHooksKey)
    if (credential === undefined || Redacted.value(credential).length < minKeyLength) {
      return yield* refuse(`MQTT_BRIDGE_HOOKS_KEY: expected at least ${minKeyLength} characters`)
    }
    const hooks = BrokerHooks.layer({ credential, vhost: vhostOf(Redacted.value(url)) }).pipe(
      Layer.provide(
        PlatformNode.HttpServer.layer(createServer, { host, port }).pipe(
          Layer.catch(({ cause }) =>
            Layer.unwrap<HttpServer.HttpServer, never, never, InvalidConfig, never>(
              Effect.fail(
                refuse(
                  `HTTP_HOST, MQTT_BRIDGE_HOOKS_PORT: cannot listen on ${host}, port ${port} (${String(cause)})`
                )
              )
            )
          )
        )
      )
    )
    return Layer.merge(hooks, MqttBridge.layer).pipe(Layer.provide(RabbitMq.layer({ url, mqttUrl })))
  }))

/** The virtual host in an AMQP URL; `/` without one. */
const vhostOf = (url: string): string => decodeURIComponent(new URL(url).pathname.slice(1)) || "/"
