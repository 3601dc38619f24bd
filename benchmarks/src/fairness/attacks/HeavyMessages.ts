/**
 * Messages of 244 KB with 125,000 values of one property, and a scene that looks
 * at each value.
 */
import type { Attack } from "../Attack.ts"
import { openDevice, publish } from "../../DeviceSocket.ts"

/** Messages that wait for their acknowledgement at a time. */
const window = 4

export const heavyMessages: Attack = {
  name: "heavy-messages",
  prepare: async ({ address, cloud, count, tenant }) => {
    const number = { id: "n", name: "n", accessMode: "r", dataType: { type: "int", min: 0, max: 9 } }
    const product = await tenant.createProduct("Heavy", [number])
    const [device] = await tenant.createDevices(product, 1)
    const of = { product_key: product.product_key, device_name: device!.deviceName }
    await tenant.call("POST", "/rule-engine/scenes", {
      name: "Heavy",
      status: "enable",
      triggers: [{ URI: "trigger/device/property", params: { ...of, property_id: "n" } }]
    })
    const topic = device!.topic.replace("property/post", "property/batch/post")
    const values = Array.from({ length: 125_000 }, (_, i) => i % 2).join(",")
    const message = publish(topic, `{"id":"1","params":{"properties":{"n":[${values}]}}}`, 1)
    const open = (): void => {
      openDevice(device!, {
        mqtt: cloud.mqtt,
        from: address(),
        onConnack: (_, socket) => socket.write(Buffer.concat(Array.from({ length: window }, () => message))),
        onPuback: (socket) => {
          count("messages acknowledged")
          socket.write(message)
        },
        onClose: () => setTimeout(open, 200)
      })
    }
    return open
  }
}
