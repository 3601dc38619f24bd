/**
 * The MQTT broker through which devices reach Device Cloud.
 *
 * - `MqttServer`: the broker. `MqttServer.layer` listens on TLS and TCP.
 * - `MqttWebSocket`: MQTT over WebSocket on an HTTP server of the application.
 * - `DevelopmentCertificate`: a certificate for development.
 * - `CertificateFiles`: a certificate in files that are renewed.
 */
export * as CertificateFiles from "./CertificateFiles.ts"
export * as DevelopmentCertificate from "./DevelopmentCertificate.ts"
export type { Limits } from "./Limits.ts"
/** `HandshakeTurns`, `modernTls` and `renew` serve HTTPS servers of the application as well. */
export { type Greeter, HandshakeTurns } from "./HandshakeTurns.ts"
export { ListenError, modernTls, renew, type TlsOptions } from "./Listening.ts"
export { type Admission, MqttServer, type Options } from "./MqttServer.ts"
export * as MqttWebSocket from "./MqttWebSocket.ts"
export type { ArrivalSocket } from "./session/Arrivals.ts"
/** How long the cloud waits for the software of a device that connects, for all connections of a broker. */
export { ListeningTimes } from "./session/Readiness.ts"
/** The other end of a connection, and how to find it out for a socket that `MqttServer` takes. */
export { type Peer, peerOf } from "./session/Peer.ts"
