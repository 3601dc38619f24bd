/**
 * Network addresses as text: IPv4 and IPv6, ranges of them, and the group of
 * addresses that one party can choose from.
 */

/** The bytes of an address: 4 of IPv4, 16 of IPv6. An IPv4 address inside IPv6 (`::ffff:…`) is IPv4. */
type Bytes = ReadonlyArray<number>

/** The longest text of an address: IPv6 with an IPv4 end. */
const maxLength = 45

/**
 * An address as the cloud writes it: IPv4 in its own notation, also inside IPv6, and
 * IPv6 in small letters and without a zone. Any other text stays.
 */
export const plainAddress = (text: string): string => {
  if (!text.includes(":")) return text
  const bytes = parseAddress(text)
  if (bytes === undefined) return text
  return bytes.length === 4 ? bytes.join(".") : withoutZone(text).toLowerCase()
}

const withoutZone = (text: string): string => text.split("%", 1)[0]!

/** Returns the bytes of an address; undefined: the text is none. */
export const parseAddress = (text: string): Bytes | undefined => {
  if (text.length > maxLength) return undefined
  if (!text.includes(":")) return parseV4(text)
  const bytes = parseV6(withoutZone(text))
  return bytes !== undefined && isMapped(bytes) ? bytes.slice(12) : bytes
}

/** Whether this is an IPv4 address inside IPv6. */
const isMapped = (bytes: Bytes): boolean => bytes.slice(0, 12).every((byte, i) => byte === (i < 10 ? 0 : 255))

const parseV4 = (text: string): Bytes | undefined => {
  const parts = text.split(".")
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)
    ? parts.map(Number)
    : undefined
}

const parseV6 = (text: string): Bytes | undefined => {
  const halves = text.split("::")
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map(groupsOf)
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined
  const zeros = 16 - head.length - (tail?.length ?? 0)
  if (tail === undefined ? zeros !== 0 : zeros < 2) return undefined
  return [...head, ...Array.from({ length: zeros }, () => 0), ...tail ?? []]
}

/** The bytes of the groups on one side of `::`. */
const groupsOf = (text: string): Bytes | undefined => {
  if (text === "") return []
  const bytes: Array<number> = []
  const groups = text.split(":")
  for (const [i, group] of groups.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 255)
      continue
    }
    const v4 = i === groups.length - 1 ? parseV4(group) : undefined
    if (v4 === undefined) return undefined
    bytes.push(...v4)
  }
  return bytes
}

/**
 * The name under which an address is counted: an IPv4 address itself, of an IPv6
 * address its network of 64 bits, which belongs to one party. Any other text
 * counts as itself.
 */
export const addressGroup = (address: string): string => {
  if (!address.includes(":")) return address
  const bytes = parseAddress(address)
  if (bytes === undefined) return address
  if (bytes.length === 4) return bytes.join(".")
  return `${[0, 2, 4, 6].map((i) => (bytes[i]! * 256 + bytes[i + 1]!).toString(16)).join(":")}::/64`
}

/** An address, or a network like `10.0.0.0/8`. */
export interface AddressRange {
  readonly bytes: Bytes
  /** The leading bits that count. */
  readonly bits: number
}

/** Reads an address or a network; undefined: the text is neither. */
export const parseRange = (text: string): AddressRange | undefined => {
  const [address = "", prefix, ...rest] = text.split("/")
  const bytes = parseAddress(address)
  if (bytes === undefined || rest.length > 0) return undefined
  const length = bytes.length * 8
  if (prefix === undefined) return { bytes, bits: length }
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1
  return bits >= 0 && bits <= length ? { bytes, bits } : undefined
}

/** Whether the address lies in the range. */
export const isInRange = (address: Bytes, { bits, bytes }: AddressRange): boolean => {
  if (address.length !== bytes.length) return false
  for (let i = 0; i * 8 < bits; i++) {
    const mask = 255 & (255 << Math.max(0, 8 - (bits - i * 8)))
    if (((address[i]! ^ bytes[i]!) & mask) !== 0) return false
  }
  return true
}
