/**
 * A lamp in TypeScript, over real MQTT: it signs, connects, reports and obeys
 * (docs/protocol/README.md). It needs an MQTT client and nothing of the cloud.
 */
import mqtt from "mqtt"
import { createHmac } from "node:crypto"

/** Who the lamp is. */
export interface Triple {
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
}

/** A lamp that is connected. */
export interface Lamp {
  /** Reports values; resolves when the cloud has stored them. */
  readonly report: (properties: Readonly<Record<string, number>>) => Promise<void>
  readonly disconnect: () => Promise<void>
}

/** Connects. `obey` is called with the properties that the cloud sets, and the lamp then reports them. */
export const connectLamp = async (
  url: string,
  { deviceName, deviceSecret, productKey }: Triple,
  obey: (properties: Readonly<Record<string, number>>) => void
): Promise<Lamp> => {
  const clientId = "lamp"
  const client = await mqtt.connectAsync(url, {
    clientId: `${clientId}|signmethod=hmacsha256,authType=1|`,
    username: `${deviceName}&${productKey}`,
    password: createHmac("sha256", deviceSecret)
      .update(`clientId${clientId}deviceName${deviceName}productKey${productKey}`)
      .digest("hex"),
    // The cloud keeps commands for a lamp that is away; the lamp asks for nothing again.
    clean: false
  })
  const topic = `/sys/${productKey}/${deviceName}/thing`
  let messages = 0

  // PUBACK comes when the message is stored, so QoS 1 is enough to know.
  const send = (path: string, message: object) =>
    client.publishAsync(`${topic}/${path}`, JSON.stringify(message), { qos: 1 })
  const report = async (properties: Readonly<Record<string, number>>) => {
    await send("event/property/post", { id: String(++messages), version: "1.0", params: properties })
  }

  client.on("message", (heard, payload) => {
    if (heard !== `${topic}/service/property/set`) return
    const { id, params } = JSON.parse(payload.toString()) as { id: string; params: Record<string, number> }
    obey(params)
    void send("service/property/set_reply", { id, code: 200, data: {} }).then(() => report(params))
  })
  await client.subscribeAsync(`${topic}/service/property/set`, { qos: 1 })

  return { report, disconnect: () => client.endAsync() }
}
