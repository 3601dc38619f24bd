/**
 * Devices and a broker on real sockets, for tests of what travels over MQTT.
 */
export * as MqttDevice from "./mqtt/MqttDevice.ts"
export { type Endpoint, MqttTestServer, type Transport } from "./mqtt/MqttTestServer.ts"
export * as RawMqttSocket from "./mqtt/RawMqttSocket.ts"
