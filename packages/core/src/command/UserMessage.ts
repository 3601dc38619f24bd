/**
 * Messages with bytes, on topics that the application and its devices agree on.
 */
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"

export const UserMessage = Schema.Struct({
  /** Levels of the topic, without wildcards. At most 100 characters. */
  topic: Schema.String.check(
    Schema.isPattern(/^[^/+#\0\p{Cs}?][^+#\0\p{Cs}?]{0,99}$/u, {
      expected: "1 to 100 characters without a slash in front, + # ? and NUL"
    })
  ),
  payload: Schema.String,
  /** How `payload` encodes the bytes of the message. */
  encoding: Schema.Literals(["utf8", "base64"])
})
export interface UserMessage extends Schema.Schema.Type<typeof UserMessage> {}

const decodeFields = decodeInput(UserMessage)
const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Returns the message. Fails with `InvalidInput` if a field, or the payload in its encoding, is not valid. */
export const decodeUserMessage = Effect.fnUntraced(function*(input: UserMessage) {
  const message = yield* decodeFields(input)
  if (message.encoding === "base64" && !isBase64.test(message.payload)) {
    return yield* new InvalidInput({ issues: [{ path: ["payload"], message: "Expected base64" }] })
  }
  return message
})

/** Returns the bytes of a valid message. */
export const bytesOf = ({ encoding, payload }: UserMessage): Uint8Array =>
  encoding === "utf8" ? new TextEncoder().encode(payload) : Result.getOrThrow(Base64.decode(payload))
