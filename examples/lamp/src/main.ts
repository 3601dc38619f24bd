/**
 * A lamp grows warm, and the back end switches it off.
 */
import { connect } from "@device-cloud/promise"
import { guardLamps } from "./back-end.ts"
import { startServed } from "./cloud.ts"
import { connectLamp } from "./device.ts"
import { lamp } from "./model.ts"

await using served = await startServed()
const { apiUrl, cloud, mqttUrl } = served

const { productKey } = await cloud.products.create("default", {
  name: "Lamp",
  nodeType: "direct",
  networkType: "wifi",
  validateType: "weak",
  dataFormat: "json",
  authType: "secret"
})
await cloud.thingModels.importFrom("default", productKey, "metadata", JSON.stringify(lamp.definition))
const device = await cloud.devices.create("default", productKey, { deviceName: "desk-lamp" })
const { key } = await cloud.accessKeys.create("default", { name: "Guard", role: "operator" })

const stop = new AbortController()
const guard = guardLamps(connect({ baseUrl: apiUrl, accessKey: key }), stop.signal)

const desk = await connectLamp(mqttUrl, device, ({ power }) => console.log(`The lamp: power is ${power}`))
await desk.report({ power: 1, temperature: 25 })
await desk.report({ temperature: 31.5 })

// The lamp reports what it has done; the cloud tells of it.
for await (const { data, type } of cloud.subscribe("end", { start: "earliest" })) {
  if (type === "property" && data.properties["power"]?.value === 0) break
}
const { reported } = await cloud.typed(lamp).shadow("default", device.deviceId)
console.log(`The cloud: power ${reported.power?.value}, ${reported.temperature?.value} °C`)

stop.abort()
await guard
await desk.disconnect()
