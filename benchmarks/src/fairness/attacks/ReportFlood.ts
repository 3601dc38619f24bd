/**
 * Devices of one project that report as fast as their reports are acknowledged.
 */
import type { Attack } from "../Attack.ts"
import { openDevice, publish } from "../../DeviceSocket.ts"

const devices = 200
/** Reports of each device that wait for their acknowledgement. */
const window = 16

export const reportFlood: Attack = {
  name: "report-flood",
  prepare: async ({ address, cloud, count, tenant }) => {
    const all = await tenant.createDevices(await tenant.createProduct("Flood"), devices)
    return () => {
      for (const [i, device] of all.entries()) {
        const message = publish(device.topic, `{"id":"1","params":{"temperature":21.5,"humidity":48,"mode":"eco"}}`, 1)
        const open = (): void => {
          openDevice(device, {
            mqtt: cloud.mqtt,
            from: address(i),
            onConnack: (_, socket) => socket.write(Buffer.concat(Array.from({ length: window }, () => message))),
            onPuback: (socket) => {
              count("reports acknowledged")
              socket.write(message)
            },
            onClose: () => setTimeout(open, 100)
          })
        }
        open()
      }
    }
  }
}
