/**
 * The part of DER (X.690) that certificates, requests and revocation lists need.
 * Reading throws an error on bytes that are not DER; what is read is a view of the
 * bytes, so that a signature is checked over what was signed.
 */

/** An element. */
export interface Der {
  readonly tag: number
  /** What is inside. */
  readonly content: Buffer
  /** The whole element. */
  readonly bytes: Buffer
}

/** Tags of the universal class, `sequence` and `set` with the bit of constructed elements. */
export const Tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31
} as const

/** The tag of the constructed element `[number]` of a structure. */
export const contextTag = (number: number): number => 0xa0 | number

const misfit = () => new Error("Expected DER")

const readAt = (bytes: Buffer, start: number): Der => {
  const tag = bytes[start]
  const first = bytes[start + 1]
  // Tags of several bytes do not occur in these structures.
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) throw misfit()
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  if (first === 0x80 || lengthBytes > 4) throw misfit()
  const head = start + 2 + lengthBytes
  if (head > bytes.length) throw misfit()
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(start + 2, lengthBytes)
  const end = head + length
  if (end > bytes.length) throw misfit()
  return { tag, content: bytes.subarray(head, end), bytes: bytes.subarray(start, end) }
}

/** Reads the elements that follow each other in the bytes, to their end. */
export const readAll = (bytes: Buffer): ReadonlyArray<Der> => {
  const elements: Array<Der> = []
  for (let start = 0; start < bytes.length;) {
    const element = readAt(bytes, start)
    elements.push(element)
    start += element.bytes.length
  }
  return elements
}

/** Reads the elements inside an element that has this tag. */
export const inside = (element: Der | undefined, tag: number): ReadonlyArray<Der> => readAll(contentOf(element, tag))

/** Returns the content of an element that has this tag. */
export const contentOf = (element: Der | undefined, tag: number): Buffer => {
  if (element?.tag !== tag) throw misfit()
  return element.content
}

/** Returns the bytes of a bit string without unused bits. */
export const bitsOf = (element: Der | undefined): Buffer => {
  const content = contentOf(element, Tag.bitString)
  if (content[0] !== 0) throw misfit()
  return content.subarray(1)
}

/** Reads a time of a certificate or list, Unix milliseconds. */
export const timeOf = ({ content, tag }: Der): number => {
  const text = content.toString("latin1")
  const isShort = tag === Tag.utcTime
  if (!(isShort ? /^\d{12}Z$/ : /^\d{14}Z$/).test(text)) throw misfit()
  const [century, rest] = isShort ? [text < "50" ? 2000 : 1900, text] : [Number(text.slice(0, 2)) * 100, text.slice(2)]
  const part = (index: number) => Number(rest.slice(2 * index, 2 * index + 2))
  return Date.UTC(century + part(0), part(1) - 1, part(2), part(3), part(4), part(5))
}

export const isTime = (element: Der | undefined): element is Der =>
  element?.tag === Tag.utcTime || element?.tag === Tag.generalizedTime

/** Writes an element. */
export const write = (tag: number, ...contents: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(contents)
  if (content.length < 0x80) return Buffer.concat([Buffer.of(tag, content.length), content])
  const digits = content.length.toString(16)
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex")
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length), length, content])
}

export const sequence = (...contents: ReadonlyArray<Uint8Array>): Buffer => write(Tag.sequence, ...contents)

/** Writes an object identifier such as `2.5.4.3`. */
export const writeOid = (text: string): Buffer => {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number)
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc & 0x7f]
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f))
    return digits
  })
  return write(Tag.oid, Buffer.from(bytes))
}

/** Writes a bit string. */
export const writeBits = (bytes: Uint8Array, unused = 0): Buffer => write(Tag.bitString, Buffer.of(unused), bytes)

/** Writes a time, as RFC 5280 wants it: years from 2050 on have four digits. `at`: Unix milliseconds. */
export const writeTime = (at: number): Buffer => {
  const text = `${new Date(at).toISOString().replace(/[-:T]|\.\d+/g, "")}`
  const isLate = at >= Date.UTC(2050, 0)
  return write(isLate ? Tag.generalizedTime : Tag.utcTime, Buffer.from(isLate ? text : text.slice(2), "latin1"))
}
