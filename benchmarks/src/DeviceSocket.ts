/**
 * The MQTT connection of a device that attacks or stands by.
 */
import { connect, type Socket } from "node:net"
import { connect as connectTls, TLSSocket } from "node:tls"
import type { LoadDevice } from "./Load.ts"
import { connectPacket, packet, puback, splitter, text } from "./MqttPackets.ts"

export interface DeviceSocketOptions {
  /** The URL of MQTT, plain or over TLS. */
  readonly mqtt: string
  /** The address to connect from. Default: the system's choice. */
  readonly from?: string | undefined
  /** Default true. */
  readonly cleanSession?: boolean
  /** Called with the code of the CONNACK. */
  readonly onConnack?: (code: number, socket: Socket) => void
  /** Called with the topic and payload of each message of the cloud, which is acknowledged. */
  readonly onMessage?: (topic: string, payload: Buffer, socket: Socket) => void
  /** Called with the packet identifier when a PUBLISH of QoS 1 was acknowledged. */
  readonly onPuback?: (socket: Socket, packetId: number) => void
  readonly onClose?: () => void
}

/** Opens a connection of the device. It is not opened again when it ends. */
export const openDevice = (device: LoadDevice, options: DeviceSocketOptions): Socket => {
  const split = splitter((header, bytes, start, end) => {
    switch (header >> 4) {
      case 2:
        options.onConnack?.(bytes[start + 1]!, socket)
        return
      case 3: {
        const topicEnd = start + 2 + bytes.readUInt16BE(start)
        const hasId = (header & 6) !== 0
        if (hasId) {
          const acknowledgement = Buffer.from(puback)
          bytes.copy(acknowledgement, 2, topicEnd, topicEnd + 2)
          socket.write(acknowledgement)
        }
        options.onMessage?.(
          bytes.toString("utf8", start + 2, topicEnd),
          bytes.subarray(topicEnd + (hasId ? 2 : 0), end),
          socket
        )
        return
      }
      case 4:
        options.onPuback?.(socket, bytes.readUInt16BE(start))
    }
  })
  const socket = openSocket(options.mqtt, options.from)
  socket.once(
    socket instanceof TLSSocket ? "secureConnect" : "connect",
    () => socket.write(connectPacket(device, options.cleanSession))
  )
  socket.on("data", split)
  socket.once("close", () => options.onClose?.())
  return socket
}

/** Opens a connection to the URL's port, over TLS with whatever certificate. Errors end it, as everything else does. */
export const openSocket = (url: string, from?: string): Socket => {
  const { port, protocol } = new URL(url)
  const options = {
    host: "127.0.0.1",
    port: Number(port),
    noDelay: true,
    ...from === undefined ? {} : { localAddress: from }
  }
  const socket = protocol === "mqtts:" ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
  socket.on("error", () => {})
  return socket
}

/** A PUBLISH. Only one of QoS 1 or 2 needs a packet identifier. */
export const publish = (topic: string, payload: string | Buffer, qos: 0 | 1 | 2 = 0, packetId = 1): Buffer =>
  packet(
    0x30 | (qos << 1),
    text(topic),
    qos === 0 ? Buffer.alloc(0) : Buffer.from([packetId >> 8, packetId & 0xff]),
    Buffer.from(payload)
  )

/** Writes as fast as the socket takes it. */
export const flood = (socket: Socket, next: () => Buffer): void => {
  let isWriting = false
  const write = () => {
    isWriting = false
    for (let i = 0; i < 64 && socket.writable; i++) {
      if (!socket.write(next())) return
    }
    if (!socket.writable || isWriting) return
    isWriting = true
    setImmediate(write)
  }
  socket.on("drain", write)
  write()
}
