/**
 * The methods with which devices reply to commands (docs/protocol/commands.md).
 */
import { Predicate, Result } from "effect"
import { type CommandProgress, userReplyMethod } from "../../command/Command.ts"
import { isFiniteJson, type Json } from "../../kernel/Json.ts"
import { beginning, isWellFormed } from "../../kernel/Text.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { type DeviceReply, parameterError, success } from "../DeviceReply.ts"
import type { UplinkMessage } from "../UplinkMessage.ts"

/** Levels of objects and arrays in the data of a reply; deeper data is not kept. */
const maxDataNesting = 32
/** The kept part of the message of a reply, in UTF-16 code units. */
const maxMessageLength = 1024

const toWellFormed = (text: string): string => isWellFormed(text) ? beginning(text, maxMessageLength) : ""

/** Returns the id of a command; undefined: the value is none. */
const messageIdOf = (id: unknown): number | undefined => {
  // An object is never converted to a number.
  const messageId = typeof id === "string" || typeof id === "number" ? Number(id) : 0
  return Number.isSafeInteger(messageId) && messageId > 0 ? messageId : undefined
}

/** Reads the end of the command that the reply names by its id. */
const decode = ({ device, params, receivedAt }: UplinkMessage): Result.Result<CommandProgress, DeviceReply> => {
  const { code, data = {}, id, message = "" } = (Predicate.isObject(params) ? params : {}) as Readonly<
    Record<string, Json>
  >
  const messageId = messageIdOf(id)
  if (messageId === undefined || typeof code !== "number" || !Number.isSafeInteger(code)) {
    return Result.fail(parameterError("expected the id of a command and a code, a whole number"))
  }
  return Result.succeed({
    deviceId: device.deviceId,
    messageId,
    state: code === 200 ? "succeeded" : "failed",
    code,
    message: toWellFormed(typeof message === "string" ? message : ""),
    data: isFiniteJson(data, maxDataNesting) ? data : {},
    at: receivedAt
  })
}

const serviceReply = DeviceMethod.progress({
  name: "thing.service.**_reply",
  form: "answer",
  action: "PostServiceReply",
  decode
})

/** The bytes with which a device replies to a user message. The topic names the command. */
const userReply = DeviceMethod.progress({
  name: userReplyMethod,
  form: "user",
  decode: ({ device, params, receivedAt }) => {
    const { encoding, id, payload } = params as Readonly<Record<string, Json>>
    const messageId = messageIdOf(id)
    if (messageId === undefined) return Result.fail(parameterError("expected the id of a command"))
    return Result.succeed({
      deviceId: device.deviceId,
      messageId,
      state: "succeeded",
      code: 200,
      message: "",
      data: { payload: payload ?? "", encoding: encoding ?? "utf8" },
      at: receivedAt
    })
  }
})

/** Says only that bytes have arrived at a gateway, and has no effect. */
const rawReply = DeviceMethod.answer({ name: "thing.mesh.raw_reply", form: "answer", reply: () => success({}) })

export const methods = [serviceReply, userReply, rawReply]
