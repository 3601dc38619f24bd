/**
 * Devices and a broker on real sockets, for tests of what travels over MQTT.
 *
 * ```ts
 * layer(MqttTestServer.layerMemory, { excludeTestServices: true })("lamps", (it) => {
 *   it.effect("report their power", () =>
 *     Effect.gen(function*() {
 *       const device = yield* Fixtures.createDevice()
 *       const lamp = yield* MqttDevice.connect(device, { over: "tls" })
 *       const reply = yield* lamp.request(lamp.topic("thing/event/property/post"), { power: 1 })
 *       assert.strictEqual(reply.code, 200)
 *       assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1 })
 *     }))
 * })
 * ```
 */
export * as MqttDevice from "./mqtt/MqttDevice.ts"
export { type Endpoint, MqttTestServer, type Transport } from "./mqtt/MqttTestServer.ts"
export * as RawMqttSocket from "./mqtt/RawMqttSocket.ts"
