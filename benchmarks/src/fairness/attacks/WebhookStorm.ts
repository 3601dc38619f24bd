/**
 * Scenes whose webhooks all reach one victim.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Attack } from "../Attack.ts"
import { openDevice, publish } from "../../DeviceSocket.ts"

const scenes = 40
/** Milliseconds between the posts that fire every scene. */
const interval = 100

export const webhookStorm: Attack = {
  name: "webhook-storm",
  // Ten a second and fifty at once, with room for what a retry sends.
  limits: { "requests at the victim": 300 },
  prepare: async ({ address, cloud, count, tenant }) => {
    const server = createServer((request, response) => {
      count("requests at the victim")
      request.resume()
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const product = await tenant.createProduct("Storm")
    const [device] = await tenant.createDevices(product, 1)
    const of = { product_key: product.product_key, device_name: device!.deviceName }
    for (let n = 0; n < scenes; n++) {
      await tenant.call("POST", "/rule-engine/scenes", {
        name: `Storm ${n}`,
        status: "enable",
        triggers: [{ URI: "trigger/device/property", params: { ...of, property_id: "humidity" } }],
        actions: [{ URI: "action/webhook", params: { URL: url, method: "POST" } }]
      })
    }
    let turn = 0
    return () => {
      openDevice(device!, {
        mqtt: cloud.mqtt,
        from: address(),
        onConnack: (_, socket) => {
          setInterval(() => {
            socket.write(publish(device!.topic, `{"id":"1","params":{"humidity":${turn++ % 100}}}`))
          }, interval)
        }
      })
    }
  }
}
