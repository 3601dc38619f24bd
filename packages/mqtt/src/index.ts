/**
 * The MQTT broker through which devices reach Device Cloud.
 *
 * - `MqttServer`: the broker. `MqttServer.layer` listens on TLS and TCP.
 * - `MqttWebSocket`: MQTT over WebSocket on an HTTP server of the application.
 * - `DevelopmentCertificate`: a certificate for development.
 */
export * as DevelopmentCertificate from "./DevelopmentCertificate.ts"
export { ListenError, MqttServer, type Options, type TlsOptions } from "./MqttServer.ts"
export * as MqttWebSocket from "./MqttWebSocket.ts"
/** The other end of a connection, and how to find it out for a socket that `MqttServer.accept` takes. */
export { type Peer, peerOf } from "./session/Peer.ts"
