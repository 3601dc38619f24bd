/**
 * The methods whose messages are kept as events that no thing model describes:
 * logs, diagnosis, modbus, and user messages
 * (docs/protocol/reports.md).
 */
import { Result } from "effect"
import { userMethod } from "../../command/Command.ts"
import type { Json } from "../../kernel/Json.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { type DeviceReply, fieldError, parameterError } from "../DeviceReply.ts"
import { isMembers, replyTo } from "./PropertyMethods.ts"
import type { UplinkMessage } from "../UplinkMessage.ts"

/** Declares a method that keeps its params as an event with this id. */
export const recordAs = (
  eventId: string,
  declaration: DeviceMethod.Declaration & {
    readonly fits: (params: unknown) => boolean
    /** The reply to params that do not fit. */
    readonly refusal: DeviceReply
  }
): DeviceMethod.DeviceMethod =>
  DeviceMethod.update({
    ...declaration,
    decode: ({ params }: UplinkMessage) =>
      declaration.fits(params)
        ? Result.succeed(params as Json)
        : Result.fail(declaration.refusal),
    update: (value, state, { receivedAt }) => replyTo(state.record(eventId, value, receivedAt, receivedAt))
  })

/** Log entries in one message. */
const maxLogs = 40

const logPost = recordAs("log", {
  name: "thing.log.post",
  action: "PostSysMsg",
  fits: (params) => Array.isArray(params) && params.length > 0 && params.length <= maxLogs && params.every(isMembers),
  refusal: fieldError("params", `expected an array of 1 to ${maxLogs} log entries`)
})

/** The quality of the device's connection. */
const diagnosisPost = recordAs("diag", {
  name: "thing.diag.post",
  action: "PostRemoteDiagnosis",
  fits: (params) => isMembers(params) && params["p"] !== undefined,
  refusal: fieldError("params", "expected an object with p")
})

/** A modbus message. Its whole body is kept. */
const modbusPost = recordAs("modbus", {
  name: "thing.modbus.post",
  action: "PostModbus",
  fits: isMembers,
  refusal: parameterError("expected an object with id, version, method and params")
})

/** A message on a topic that the device and the application agree on. */
const userPost = recordAs("user", {
  name: userMethod,
  form: "user",
  fits: () => true,
  refusal: parameterError("")
})

export const methods = [logPost, diagnosisPost, modbusPost, userPost]
