/**
 * The method with which a device asks for the time (docs/protocol/reports.md).
 */
import { Predicate } from "effect"
import type { Json } from "../../kernel/Json.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { success } from "../DeviceReply.ts"

/** Returns the times as text, in Unix milliseconds, with the text or number that the device sent unchanged. */
export const networkTime = (params: unknown, receivedAt: number, sentAt: number): Readonly<Record<string, Json>> => ({
  deviceSendTime: Predicate.hasProperty(params, "deviceSendTime") && isPlain(params.deviceSendTime)
    ? params.deviceSendTime
    : "",
  serverRecvTime: String(receivedAt),
  serverSendTime: String(sentAt)
})

const isPlain = (value: unknown): value is string | number => typeof value === "string" || Number.isFinite(value)

const time = DeviceMethod.answer({
  name: "thing.ntp",
  form: "time",
  action: "PostNTP",
  reply: ({ params, receivedAt }) => success(networkTime(params, receivedAt, receivedAt))
})

export const methods = [time]
