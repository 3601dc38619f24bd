/**
 * The MQTT broker through which devices reach Device Cloud.
 */
export * as DevelopmentCertificate from "./DevelopmentCertificate.ts"
export { ListenError, MqttBroker, type Options } from "./MqttBroker.ts"
export * as MqttWebSocket from "./MqttWebSocket.ts"
