/**
 * Reads what RabbitMQ says of messages and connections.
 */
import { ConnectPacket } from "@device-cloud/alink"
import type { Message } from "amqplib"
import { topicOf } from "../BrokerHooks.ts"
import type { BrokerConnection, BrokerMessage } from "../BrokerLink.ts"

type Headers = Readonly<Record<string, unknown>>

const headersOf = ({ properties }: Message): Headers => properties.headers ?? {}

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** Reads a message of a device. */
export const messageOf = (message: Message, settle: () => void): BrokerMessage => {
  const takenAt = headersOf(message)["timestamp_in_ms"]
  return {
    topic: topicOf(message.fields.routingKey),
    payload: message.content,
    takenAt: typeof takenAt === "number" ? takenAt : undefined,
    isRedelivered: message.fields.redelivered,
    settle
  }
}

/** Reads a notice that somebody has connected; undefined: it is no device. */
export const connectionOf = (message: Message, settle: () => void): BrokerConnection | undefined => {
  const { connected_at: since, peer_host: host, pid, protocol, user, variable_map: map } = headersOf(message)
  const device = ConnectPacket.namedDevice(textOf(user))
  const clientId = /<<"client_id">> => <<"([^"]*)">>/.exec(textOf(map))?.[1]
  if (!textOf(protocol).includes("MQTT") || device === undefined || clientId === undefined) return undefined
  return {
    id: textOf(pid),
    device,
    clientId,
    ip: addressOf(textOf(host)),
    since: typeof since === "number" ? since : 0,
    settle
  }
}

/** Reads which connection has ended; undefined for other notices. */
export const endedOf = (message: Message): string | undefined =>
  message.fields.routingKey === "connection.closed" ? textOf(headersOf(message)["pid"]) : undefined

/** `{127,0,0,1}`, or eight numbers of IPv6. */
const addressOf = (host: string): string => {
  const numbers = host.replaceAll(/[{}]/g, "").split(",").map(Number)
  if (numbers.length !== 8) return numbers.join(".")
  const isMapped = numbers.slice(0, 5).every((number) => number === 0) && numbers[5] === 0xffff
  return isMapped
    ? [numbers[6]! >> 8, numbers[6]! & 255, numbers[7]! >> 8, numbers[7]! & 255].join(".")
    : numbers.map((number) => number.toString(16)).join(":")
}
