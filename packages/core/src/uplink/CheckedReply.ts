/**
 * Replies as methods of devices give them.
 */
import type { DeviceReply } from "./DeviceReply.ts"

/** Objects and arrays inside each other in the data of a reply. */
const maxNesting = 1000

/**
 * Returns the reply. Throws if it is none, or has what no transport can encode: programs may give what their
 * compiler has not seen.
 */
export const checkedReply = (reply: DeviceReply | undefined): DeviceReply => {
  if (!isReply(reply)) throw new TypeError("A method of a device gives something else than a reply that is JSON")
  return reply
}

const isReply = (reply: DeviceReply | null | undefined): reply is DeviceReply =>
  typeof reply === "object" && reply !== null && Number.isInteger(reply.code) && typeof reply.message === "string" &&
  isBytes(reply.encodedData) && isBytes(reply.bytes) &&
  // Large data that is encoded already is not walked through for each reply.
  (reply.encodedData !== undefined || isEncodable(reply.data, maxNesting))

/** Whether JSON can be made of the value: it has no `bigint`, and does not contain itself. */
const isEncodable = (value: unknown, levels: number): boolean =>
  typeof value === "object" && value !== null
    ? levels > 0 && Object.values(value).every((member) => isEncodable(member, levels - 1))
    : typeof value !== "bigint"

/** Whether the value is absent, or bytes, also those of another realm, as in a test of jest. */
const isBytes = (value: unknown): boolean => value === undefined || ArrayBuffer.isView(value)
