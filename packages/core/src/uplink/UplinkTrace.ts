/**
 * Notes messages of traced devices as transports have them: with topic, payload and
 * reply.
 */
import { Context, Effect, Layer } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { maxReplyBytes, tracedText } from "../trace/TracedText.ts"
import { throughGateway, type TracedReply } from "../trace/TraceEntry.ts"
import { TraceRecorder } from "../trace/TraceRecorder.ts"
import { DeviceMethods } from "./DeviceMethods.ts"
import type { DeviceReply } from "./DeviceReply.ts"
import type { SubDeviceName } from "./SubDeviceDirectory.ts"

/** A message of a device as a transport has it. */
export interface ArrivedMessage {
  /** The device that speaks. */
  readonly device: DeviceIdentity
  /** The device whose connection carries the message. Default: `device`. */
  readonly carrier?: DeviceIdentity
  readonly transport: string
  /** The topic; over HTTP the action. */
  readonly topic: string
  readonly payload: Uint8Array | string
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** The sub-device that the gateway `device` speaks for. */
  readonly subDevice?: SubDeviceName | undefined
  /** What the message says, if it can be read: it may name further sub-devices. */
  readonly method?: string
  readonly params?: unknown
}

export class UplinkTrace extends Context.Service<UplinkTrace, {
  /** Whether any device is traced. Look before you make an `ArrivedMessage`. */
  readonly isOn: () => boolean
  /**
   * Notes the message for the device that speaks, and for the sub-devices that it
   * speaks for, if they are traced. `reply`: what the cloud has answered; undefined: it
   * keeps silent. Does not wait.
   */
  readonly note: (message: ArrivedMessage, reply: DeviceReply | undefined) => void
}>()("@device-cloud/core/uplink/UplinkTrace") {
  static readonly layer: Layer.Layer<UplinkTrace, never, TraceRecorder | DeviceMethods> = Layer.effect(
    UplinkTrace,
    Effect.suspend(() => make)
  )
}

/** Issues of a reply that are shown. */
const maxIssues = 20
/** Characters of a topic, and of a sentence. */
const maxLine = 512

const make = Effect.gen(function*() {
  const recorder = yield* TraceRecorder
  const methods = yield* DeviceMethods

  /** The sub-devices that the message names. What cannot be read names none. */
  const namesIn = ({ method, params, subDevice }: ArrivedMessage): ReadonlyArray<SubDeviceName> => {
    const spokenFor = subDevice === undefined ? [] : [subDevice]
    if (method === undefined) return spokenFor
    try {
      return [...spokenFor, ...methods.find(method)?.names?.(params) ?? []]
    } catch {
      return spokenFor
    }
  }

  return UplinkTrace.of({
    isOn: recorder.isOn,
    note: (message, reply) => {
      if (!recorder.isOn()) return
      const { carrier, device, payload, receivedAt, topic, transport } = message
      const names = namesIn(message)
      const isTraced = recorder.isTraced(device.deviceId)
      if (!isTraced && names.length === 0) return
      const entry = {
        at: receivedAt,
        kind: "uplink",
        transport,
        topic: topic.slice(0, maxLine),
        payload: tracedText(payload),
        ...reply === undefined ? {} : { reply: tracedReply(reply) }
      } as const
      if (isTraced) recorder.note(device.deviceId, { ...entry, ...throughGateway(device, carrier) })
      const gateway = { productKey: device.productKey, deviceName: device.deviceName }
      for (const name of names) recorder.noteNamed(name, { ...entry, gateway })
    }
  })
})

const tracedReply = ({ bytes, code, data, issues = [], message }: DeviceReply): TracedReply => ({
  code,
  message: message.slice(0, maxLine),
  data: tracedText(bytes ?? JSON.stringify(data), maxReplyBytes),
  issues: issues.slice(0, maxIssues).map(({ message, path }) => ({ path, message: message.slice(0, maxLine) }))
})
