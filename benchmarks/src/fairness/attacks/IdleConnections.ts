/**
 * Thousands of connections that say nothing, from many addresses.
 */
import { connect as connectTls } from "node:tls"
import type { Attack } from "../Attack.ts"
import { openSocket } from "../../DeviceSocket.ts"

const connections = 6000
/** Connections that are opened in each turn of 10 ms. */
const pace = 30

export const idleConnections: Attack = {
  name: "idle-connections",
  prepare: async ({ address, cloud, count }) => {
    const urls = [cloud.mqtt, cloud.mqtts, cloud.http]
    const waiting = Array.from({ length: connections }, (_, n) => n)
    const open = (n: number): void => {
      const url = urls[n % urls.length]!
      const socket = openSocket(url, address(n % 500))
      socket.once("connect", () => count("connections"))
      socket.resume()
      socket.once("close", () => waiting.push(n))
      // Half of those to the TLS port finish the handshake.
      if (url === cloud.mqtts && n % 2 === 0) connectTls({ socket, rejectUnauthorized: false }).on("error", () => {})
    }
    return () => {
      setInterval(() => {
        for (const n of waiting.splice(0, pace)) open(n)
      }, 10)
    }
  }
}
