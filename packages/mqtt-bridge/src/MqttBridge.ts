/**
 * Carries devices that are connected to a broker in front of the cloud
 * (docs/mqtt-bridge.md).
 */
import { broadcastTopic } from "@device-cloud/alink"
import {
  Broadcasts,
  type DeviceAuthenticator,
  type DeviceMethods,
  type DeviceSessions,
  type HistoryStore,
  type TraceRecorder,
  type Uplink,
  type UplinkRates,
  type UplinkTrace
} from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { BrokerLink } from "./BrokerLink.ts"
import * as CarriedDevices from "./CarriedDevices.ts"
import * as DeviceMessages from "./DeviceMessages.ts"

/** The share whose node publishes broadcasts. */
const broadcastShare = 0

/** Takes part in the work of the broker while it lives. */
export const layer: Layer.Layer<
  never,
  never,
  | BrokerLink
  | Broadcasts
  | DeviceAuthenticator
  | DeviceMethods
  | DeviceSessions
  | HistoryStore
  | TraceRecorder
  | Uplink
  | UplinkRates
  | UplinkTrace
> = Layer.effectDiscard(Effect.gen(function*() {
  const link = yield* BrokerLink
  const broadcasts = yield* Broadcasts
  const openDevices = yield* CarriedDevices.make
  const openMessages = yield* DeviceMessages.make
  yield* link.serve((share) =>
    Effect.gen(function*() {
      const devices = yield* openDevices
      const messages = yield* openMessages
      if (share === broadcastShare) {
        yield* broadcasts.listen(({ payload, productKey, topic }) =>
          link.send(broadcastTopic(productKey, topic), Buffer.from(payload))
        )
      }
      return { ...devices, message: messages.take, drained: messages.drained }
    })
  )
}))
