/**
 * HTTP requests whose bodies come but for the last byte: registrations and
 * messages of devices without a signature, and requests with a key.
 */
import type { Attack } from "../Attack.ts"
import { openSocket } from "../../DeviceSocket.ts"

const connections = 600
/** Bytes of each body: below every limit of a management route, far above what a registration needs. */
const length = 2_000_000

/** Until a connection that has ended is opened again, milliseconds: 120 MB a second if all end at once. */
const pause = 10_000

export const unfinishedBodies: Attack = {
  name: "unfinished-bodies",
  prepare: async ({ address, cloud, count }) => {
    const paths = [
      "/openapi/v1/auth/register/device",
      "/openapi/v1/thing-uplink?product_key=x&device_name=y&sign_method=hmacsha1&random=12345678&sign=00&action=PostProperty",
      "/openapi/v1/products"
    ]
    const body = Buffer.alloc(length - 1, "x")
    const open = (n: number): void => {
      const socket = openSocket(cloud.http, address(n))
      socket.once("connect", () => {
        count("connections")
        socket.write(
          `POST ${paths[n % paths.length]} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
            `authorization: Bearer ${cloud.key}\r\ncontent-length: ${length}\r\n\r\n`
        )
        socket.write(body)
      })
      socket.once("data", () => count("answers"))
      socket.resume()
      socket.once("close", () => setTimeout(open, pause, n))
    }
    return () => {
      for (let n = 0; n < connections; n++) open(n)
    }
  }
}
