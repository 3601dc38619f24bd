/**
 * Which topics a connection may use: those of its device, and those of the
 * sub-devices that are online through it (docs/protocol/topics.md).
 */
import { type Owner, ownerOf } from "@device-cloud/alink"
import { type DeviceIdentity, RateWindow, SubDeviceSessions } from "@device-cloud/core"
import { Clock, Effect, Exit, Metric } from "effect"
import type { Done } from "../protocol/DeviceBroker.ts"
import type { ConnectionState } from "./ConnectionState.ts"
import type { MqttConnection } from "./MqttConnection.ts"

export interface TopicAccess {
  /** Returns the device that the topic or filter belongs to, if the connection speaks for it. */
  readonly speakerOf: (connection: MqttConnection, topic: string) => DeviceIdentity | undefined
  /** Refuses a message on a topic without a speaker. Many of them end the connection. */
  readonly refuse: (state: ConnectionState, connection: MqttConnection, topic: string, done: Done) => void
  /** Forgets a connection that has ended. */
  readonly forget: (state: ConnectionState) => void
}

/** Messages on foreign topics that end a connection when they come within a minute. */
const forbiddenLimit = { limit: 10, window: 60_000, capacity: 100_000 } as const

const dropped = Metric.counter("device_cloud_mqtt_publishes_dropped_total", {
  description: "PUBLISH packets without effect, by reason",
  incremental: true
})

/** Counts a message that was dropped. */
export const countDropped = (reason: string): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(dropped, { reason }), 1)

export const make: Effect.Effect<TopicAccess, never, SubDeviceSessions> = Effect.gen(function*() {
  const subDevices = yield* SubDeviceSessions
  const clock = yield* Clock.Clock
  /** Foreign topics that connections have used, by the number of the connection. */
  const forbidden = new RateWindow(forbiddenLimit)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const speakerOf: TopicAccess["speakerOf"] = ({ device, session }, topic) => {
    const owner = ownerOf(topic)
    if (owner === undefined || session === undefined) return undefined
    return owner.productKey === device.productKey && owner.deviceName === device.deviceName
      ? device
      : subDevices.carried(session, owner)
  }

  const forbid = (state: ConnectionState, done: Done) => {
    runFork(countDropped("forbidden topic"))
    const isTooMany = forbidden.hit(String(state.number), clock.currentTimeMillisUnsafe())
    done(isTooMany ? new Error("too many forbidden topics") : null)
  }

  /** Tells a gateway that its sub-device has to log in first; every other topic is forbidden. */
  const refuseOwned = (state: ConnectionState, gateway: DeviceIdentity, owner: Owner, done: Done) =>
    runFork(subDevices.refuse(gateway, owner)).addObserver((exit) => {
      if (Exit.isFailure(exit) || !exit.value) return forbid(state, done)
      runFork(countDropped("no session"))
      done()
    })

  return {
    speakerOf,
    forget: ({ number }) => forbidden.forget(String(number)),
    refuse: (state, { device }, topic, done) => {
      const owner = ownerOf(topic)
      if (owner === undefined) forbid(state, done)
      else refuseOwned(state, device, owner, done)
    }
  }
})
