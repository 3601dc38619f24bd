/** A device of an example, on MQTT. */
import mqtt from "mqtt"
import { createHmac } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { ExampleServer } from "./ExampleServer.ts"
import type { FixtureDevice } from "./Fixture.ts"

export interface Device {
  readonly publish: (topic: string, payload: string) => Promise<unknown>
  /** Messages that have come and that nobody has taken, by the time of their coming. */
  readonly inbox: Array<{ readonly topic: string; readonly text: string }>
  readonly end: () => void
}

/** Connects a device, and resolves when the server has let it in. */
export const connect = async (server: ExampleServer, device: FixtureDevice): Promise<Device> => {
  const { deviceName, deviceSecret, productKey } = device
  const inbox: Array<{ readonly topic: string; readonly text: string }> = []
  const signed = `clientId${deviceName}deviceName${deviceName}productKey${productKey}`
  const client = mqtt.connect(server.mqtts, {
    clientId: `${deviceName}|signmethod=hmacsha1,authType=1|`,
    username: `${deviceName}&${productKey}`,
    password: createHmac("sha1", deviceSecret).update(signed).digest("hex"),
    ca: readFileSync(join(server.directory, "tls/ca.pem")),
    reconnectPeriod: 0
  })
  client.on("message", (topic, payload) => inbox.push({ topic, text: payload.toString() }))
  await new Promise<void>((resolve, reject) => client.once("connect", () => resolve()).once("error", reject))
  return {
    publish: (topic, payload) => client.publishAsync(topic, payload, { qos: 1 }),
    inbox,
    end: () => client.end(true)
  }
}
