/**
 * The MQTT broker through which devices reach Device Cloud.
 */
export * as DevelopmentCertificate from "./DevelopmentCertificate.ts"
export { ListenError, MqttServer, type Options } from "./MqttServer.ts"
export * as MqttWebSocket from "./MqttWebSocket.ts"
