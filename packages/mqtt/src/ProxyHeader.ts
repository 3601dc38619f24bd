/**
 * The header of the PROXY protocol, versions 1 and 2: with it a proxy says from
 * where a connection comes that it passes on
 * (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).
 */
import { type ClientOrigin, plainAddress } from "@device-cloud/core"
import { isIP, type Socket } from "node:net"

/** What a header says. */
export interface ProxyHeader {
  /** Its bytes. */
  readonly length: number
  /** Undefined: the proxy speaks for itself. */
  readonly origin: ClientOrigin | undefined
}

/** Bytes in a header; more than any proxy needs. */
const maxBytes = 1024
/** Bytes in a header of version 1 (section 2.1). */
const maxTextBytes = 107

const signature = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1")
/** What follows the signature: version and command, family, and the length of the rest. */
const binaryHeadBytes = signature.length + 4

/** Bytes of the addresses and ports, by address family (section 2.2). */
const addressBytes: Readonly<Record<number, number>> = { 1: 12, 2: 36 }
/** The type of the field that tells of TLS, and its bit for a client that used it. */
const tlsField = 0x20
const usedTls = 0x01

/** Reads the header at the start of `bytes`. `incomplete`: it may go on; `malformed`: it is none. */
export const parse = (bytes: Buffer): ProxyHeader | "incomplete" | "malformed" => {
  const start = Math.min(bytes.length, signature.length)
  if (bytes.subarray(0, start).equals(signature.subarray(0, start))) return parseBinary(bytes)
  return parseText(bytes)
}

/** Versions of IP, by the word for the family in a header of version 1. */
const ipVersions: Readonly<Record<string, number>> = { TCP4: 4, TCP6: 6 }

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535

const parseText = (bytes: Buffer): ProxyHeader | "incomplete" | "malformed" => {
  const text = bytes.toString("latin1", 0, maxTextBytes)
  if (!text.startsWith("PROXY ".slice(0, text.length))) return "malformed"
  const end = text.indexOf("\r\n")
  if (end === -1) return bytes.length < maxTextBytes ? "incomplete" : "malformed"
  const length = end + 2
  const [, family = "", source = "", destination = "", ...ports] = text.slice(0, end).split(" ")
  if (family === "UNKNOWN") return { length, origin: undefined }
  const version = ipVersions[family]
  const areRight = isIP(source) === version && isIP(destination) === version && ports.length === 2 &&
    ports.every(isPort)
  if (!areRight) return "malformed"
  return { length, origin: { address: plainAddress(source), isSecure: false } }
}

const parseBinary = (bytes: Buffer): ProxyHeader | "incomplete" | "malformed" => {
  if (bytes.length < binaryHeadBytes) return "incomplete"
  const versionAndCommand = bytes[signature.length]!
  const family = bytes[signature.length + 1]! >> 4
  const length = binaryHeadBytes + bytes.readUInt16BE(signature.length + 2)
  const command = versionAndCommand & 0xf
  if (versionAndCommand >> 4 !== 2 || command > 1 || length > maxBytes) return "malformed"
  if (bytes.length < length) return "incomplete"
  const rest = bytes.subarray(binaryHeadBytes, length)
  const addresses = addressBytes[family]
  if (command === 0 || addresses === undefined) return { length, origin: undefined }
  if (rest.length < addresses) return "malformed"
  const address = family === 1 ? rest.subarray(0, 4).join(".") : textOf(rest.subarray(0, 16))
  return { length, origin: { address, isSecure: saysTls(rest.subarray(addresses)) } }
}

/** The text of an IPv6 address. */
const textOf = (bytes: Buffer): string => {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  return plainAddress(new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1))
}

/** Whether a field says that the client has used TLS. */
const saysTls = (fields: Buffer): boolean => {
  for (let at = 0; at + 3 <= fields.length;) {
    const length = fields.readUInt16BE(at + 1)
    if (fields[at] === tlsField && length > 0 && at + 3 < fields.length) return (fields[at + 3]! & usedTls) !== 0
    at += 3 + length
  }
  return false
}

/**
 * Reads the header of a connection, and leaves what follows it to the next reader.
 * Ends a connection without one, or whose header is not complete after `limit`
 * milliseconds; `refused` is called then.
 */
export const read = (
  socket: Socket,
  limit: number,
  on: { readonly read: (header: ProxyHeader) => void; readonly refused: () => void }
): void => {
  let bytes: Buffer = Buffer.alloc(0)
  const refuse = () => {
    stop()
    socket.destroy()
    on.refused()
  }
  const timer = setTimeout(refuse, limit)
  const stop = () => {
    clearTimeout(timer)
    socket.off("readable", look)
    socket.off("close", stop)
  }
  const look = () => {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) return
    bytes = Buffer.concat([bytes, chunk])
    const header = parse(bytes)
    if (header === "incomplete") return
    if (header === "malformed") return refuse()
    stop()
    if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length))
    on.read(header)
  }
  socket.on("readable", look)
  socket.once("close", stop)
}
