/**
 * MQTT packets as the parser of aedes emits them, and the rules of MQTT 3.1.1
 * that the parser does not check.
 */

/** A packet; which members it has depends on `cmd`. */
export interface Packet {
  readonly cmd: string
  /** Bytes of the packet without its fixed header. */
  readonly length: number
  readonly messageId?: number
  readonly qos: number
  readonly topic: string
  readonly will?: { readonly qos: number; readonly topic: string; readonly payload: Uint8Array }
  readonly subscriptions: ReadonlyArray<{ readonly topic: string }>
  readonly unsubscriptions: ReadonlyArray<string>
  /** The protocol level is one by which bridges introduce themselves. */
  readonly bridgeMode?: boolean
  /** Of a CONNECT: 3, 4 or 5. */
  readonly protocolVersion?: number
  readonly protocolId?: string
  readonly clientId?: string
  readonly username?: string
  readonly password?: Uint8Array
}

/** Whether the text has neither NUL nor bytes that were not UTF-8. */
export const isText = (text: string): boolean => !/[\0\uFFFD]/.test(text)

const isId = (id: number | undefined): boolean => id !== undefined && id > 0

/** Bytes of a field with its length in front; of one that is absent, none. */
const fieldBytes = (field: string | Uint8Array | undefined): number =>
  field === undefined ? 0 : 2 + Buffer.byteLength(field)

/** Whether a CONNECT of MQTT 3 ends where its last field ends: the parser passes over what is behind it. */
const endsWithFields = ({ clientId, length, password, protocolId, username, will }: Packet): boolean =>
  // Level, flags and keep-alive have four bytes.
  length === 4 + [protocolId, clientId, will?.topic, will?.payload, username, password]
        .reduce((sum, field) => sum + fieldBytes(field), 0)

/** Whether the text names a topic: it is no filter. */
const isTopicName = (topic: string): boolean => isText(topic) && topic !== "" && !/[+#]/.test(topic)

/** Whether the text is a filter: `+` stands for a whole level, `#` for the last ones. Aedes accepts `a/+b`. */
const isTopicFilter = (filter: string): boolean =>
  isText(filter) && filter !== "" &&
  filter.split("/").every((level, i, levels) =>
    level === "+" || (level === "#" && i === levels.length - 1) || !/[+#]/.test(level)
  )

/** Checks what the parser does not look at (MQTT 3.1.1, sections 1.5.3, 2.3.1, 3, 4.7.1). */
export const keepsToProtocol = (packet: Packet): boolean => {
  const { cmd, length, messageId } = packet
  switch (cmd) {
    case "connect":
      return endsWithFields(packet) &&
        (packet.will === undefined || (packet.will.qos < 3 && isTopicName(packet.will.topic)))
    case "publish":
      return isText(packet.topic) &&
        (packet.qos === 0 || (isId(messageId) && length >= 4 + Buffer.byteLength(packet.topic)))
    case "puback":
    case "pubrec":
    case "pubrel":
    case "pubcomp":
      return length === 2 && isId(messageId)
    case "subscribe":
      return isId(messageId) && packet.subscriptions.length > 0 &&
        packet.subscriptions.every(({ topic }) => isTopicFilter(topic))
    case "unsubscribe":
      return isId(messageId) && packet.unsubscriptions.length > 0 && packet.unsubscriptions.every(isTopicFilter)
    case "pingreq":
    case "disconnect":
      return length === 0
    default:
      return true
  }
}

/** CONNACK with return code 1: the server does not speak this level of the protocol. */
export const unacceptableProtocolLevel = Buffer.from([0x20, 2, 0, 1])

const spoken = Buffer.from("This server speaks MQTT 3.1.1: connect with protocol level 4")

/**
 * The same for a client of MQTT 5: reason code 0x84 with a reason string
 * (MQTT 5.0, section 3.2; docs/decisions/0067-mqtt-5.md).
 */
export const unsupportedProtocolVersion = Buffer.concat([
  Buffer.from([0x20, spoken.length + 6, 0, 0x84, spoken.length + 3, 0x1f, 0, spoken.length]),
  spoken
])
