/**
 * Devices at an MQTT broker in front of Device Cloud (docs/mqtt-bridge.md).
 *
 * - `MqttBridge`: takes the messages of devices from the broker, and sends through it.
 * - `BrokerLink`: the port that a broker fills; `RabbitMq` is RabbitMQ over AMQP.
 * - `BrokerHooks`: the HTTP hooks by which the broker asks who may connect and speak.
 */
export * as BrokerHooks from "./BrokerHooks.ts"
export {
  type BrokerConnection,
  BrokerLink,
  type BrokerMessage,
  BrokerUnreachable,
  type ShareHandler
} from "./BrokerLink.ts"
export * as MqttBridge from "./MqttBridge.ts"
export * as RabbitMq from "./rabbitmq/RabbitMq.ts"
