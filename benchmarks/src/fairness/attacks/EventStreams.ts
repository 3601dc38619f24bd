/**
 * Many streams of events of one project, some of which are never read.
 */
import type { Attack } from "../Attack.ts"
import { openDevice, openSocket, publish } from "../../DeviceSocket.ts"

const streams = 1000
/** Milliseconds between the posts of the project's own device. */
const interval = 20

export const eventStreams: Attack = {
  name: "event-streams",
  prepare: async ({ address, cloud, count, tenant }) => {
    const [device] = await tenant.createDevices(await tenant.createProduct("Streams"), 1)
    const open = (n: number): void => {
      const socket = openSocket(cloud.http, address())
      socket.once("connect", () => {
        socket.write(`GET /openapi/v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${cloud.key}\r\n\r\n`)
      })
      socket.once("data", (bytes) => {
        count(bytes.toString("latin1", 9, 12) === "200" ? "streams" : "streams refused")
        if (n % 10 === 0) socket.pause()
      })
      socket.resume()
      socket.once("close", () => setTimeout(open, 1000, n))
    }
    return () => {
      for (let n = 0; n < streams; n++) open(n)
      openDevice(device!, {
        mqtt: cloud.mqtt,
        from: address(),
        onConnack: (_, socket) => {
          setInterval(() => socket.write(publish(device!.topic, `{"id":"1","params":{"humidity":1}}`)), interval)
        }
      })
    }
  }
}
