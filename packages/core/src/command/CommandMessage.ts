/**
 * The messages that carry commands to devices.
 */
import { Option, Result } from "effect"
import { Hex } from "effect/encoding"
import type { CodecMisfit } from "../codec/CodecDescription.ts"
import * as ProductCodec from "../codec/ProductCodec.ts"
import type { DownlinkMessage } from "../connection/DeviceSession.ts"
import type { Json } from "../kernel/Json.ts"
import { type Command, methodOf, rawTopic } from "./Command.ts"

type Params = Readonly<Record<string, Json>>

/** Returns what a raw device gets; undefined: the device gets JSON. */
export const bytesOf = (
  command: Command,
  params: Params,
  codec: Option.Option<ProductCodec.ProductCodec>
): Result.Result<Uint8Array, CodecMisfit> | undefined => {
  const { userTopic } = command
  if (userTopic === rawTopic) return Result.succeed(Result.getOrThrow(Hex.decode(String(command.params["data"]))))
  if (userTopic !== null || Option.isNone(codec)) return undefined
  const encode = (params: Params) =>
    ProductCodec.encode(codec.value, "commands", { method: methodOf(command), id: command.messageId, params })
  const bytes = encode(params)
  // A message may need the properties, too, that the device has reported since.
  return Result.isFailure(bytes) && params !== command.params ? encode(command.params) : bytes
}

/** Returns the message for a device that gets JSON. */
export const messageOf = (command: Command, params: Params): DownlinkMessage => ({
  id: String(command.messageId),
  method: methodOf(command),
  params: command.userTopic === null || command.userTopic === rawTopic
    ? params
    : { ...params, topic: command.userTopic },
  ...command.synchronous ? { synchronous: true } : {}
})
