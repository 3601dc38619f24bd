/**
 * Replies to devices, and the codes that several features use
 * (docs/protocol/codes.md).
 */
import type { InputIssue } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"

/** The answer to a message of a device. */
export interface DeviceReply {
  /** 200: success. */
  readonly code: number
  readonly message: string
  readonly data: Json
  /**
   * The members of the message that do not fit, and what was expected. `message` says it, too; of a
   * message that has taken effect without them, `data`.
   */
  readonly issues?: ReadonlyArray<InputIssue>
  /** `data` as JSON in UTF-8, if that is kept: large data is neither encoded nor checked for each reply. */
  readonly encodedData?: Uint8Array
  /** A block of a file, which follows `data`; or the whole reply to bytes, in place of the members above. */
  readonly bytes?: Uint8Array
}

/** Says that the message has taken effect. */
export const success = (data: Json): DeviceReply => ({ code: 200, message: "success", data })

/** Says why the message has no effect. */
export const failure = (code: number, message: string): DeviceReply => ({ code, message, data: {} })

/** The params do not have the expected form. */
export const parameterError = (message: string): DeviceReply => failure(460, message)
/** A member of the message does not fit. `path` leads to it, with dots between names. */
export const fieldError = (path: string, expected: string, code = 460): DeviceReply => ({
  ...failure(code, `${path}: ${expected}`),
  issues: [{ path: path.split("."), message: expected }]
})
export const systemError: DeviceReply = failure(500, "system exception")
export const deviceNotFound: DeviceReply = failure(6100, "device not found")
export const tooManyDesired: DeviceReply = failure(6104, "more than 200 properties")
export const tooManyProperties: DeviceReply = failure(6106, "map size must less than 200")
/** The topic or method does not exist. */
export const topicError: DeviceReply = failure(6203, "topic parse error")
export const notJson: DeviceReply = failure(6207, "data is not JSON")
export const tooManyEvents: DeviceReply = failure(6356, "more than 200 events")
export const tooManyPacked: DeviceReply = failure(6357, "more than 20 sub-devices")
/** The device does not belong to the gateway. */
export const noTopology: DeviceReply = failure(6401, "topo relation not exist")
export const tooManySessions: DeviceReply = failure(428, "too many subdevices under gateway")
export const tooManyRequests: DeviceReply = failure(429, "too many requests")
/** The sub-device has not logged in. */
export const noSession: DeviceReply = failure(520, "device no session")
export const deviceDisabled: DeviceReply = failure(6204, "device disabled")
export const productNotFound: DeviceReply = failure(6250, "product not found")
export const wrongSignature: DeviceReply = failure(6287, "invalid sign")
export const gatewayFull: DeviceReply = failure(6400, "gateway sub-device limit reached")
export const belongsToOther: DeviceReply = failure(6619, "device bound to another gateway")
/** There is no remote configuration. */
export const noConfiguration: DeviceReply = failure(6713, "thing config function is not available")
