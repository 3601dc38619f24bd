/**
 * Limits how much devices and projects send, in front of the queue of `Uplink`
 * (docs/decisions/0048-fair-shares-of-the-uplink.md). Transports ask for each
 * message. Nodes count together, but for what comes within a second.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { ProjectActivity } from "../activity/ProjectActivity.ts"
import { Troubles } from "../activity/Troubles.ts"
import { SharedCounts } from "../cluster/SharedCounts.ts"
import type { DeviceIdentity } from "../device/Device.ts"
import { TokenBuckets } from "../kernel/TokenBucket.ts"
import { tooManyRequests } from "./DeviceReply.ts"

/** What may be sent in a second. `Infinity`: any number. */
export interface UplinkRate {
  /** Messages; of a message with more than ten values, each further ten count as one more. */
  readonly messages: number
  /** Bytes of messages. */
  readonly bytes: number
}

/** The rates of one device with its sub-devices, and of all devices of a project. Twice as much may come at once. */
export const UplinkRateLimits = Context.Reference<{ readonly device: UplinkRate; readonly project: UplinkRate }>(
  "@device-cloud/core/uplink/UplinkRateLimits",
  {
    defaultValue: () => ({
      device: { messages: 1000, bytes: 1024 * 1024 },
      project: { messages: 200_000, bytes: 200 * 1024 * 1024 }
    })
  }
)

type Sender = Pick<DeviceIdentity, "deviceId" | "projectId">

export class UplinkRates extends Context.Service<UplinkRates, {
  /**
   * Counts a message of the device whose connection carries it. Returns false
   * without counting it if the device or its project is above its rate. The
   * transport then replies with code 429 (`DeviceReply.tooManyRequests`). A
   * message that gets no reply must not be lost: the transport takes it and calls
   * `charge`.
   */
  readonly admits: (sender: Sender, bytes: number) => boolean
  /** Counts messages, whatever the rate is. */
  readonly charge: (sender: Sender, messages: number, bytes: number) => void
  /** Returns how long the transport reads nothing more of the device, milliseconds; 0: it goes on reading. */
  readonly pause: (sender: Sender) => number
}>()("@device-cloud/core/uplink/UplinkRates") {
  static readonly layer: Layer.Layer<UplinkRates, never, ProjectActivity | Troubles | SharedCounts> = Layer.effect(
    UplinkRates,
    Effect.suspend(() => make)
  )
}

/** What may come at once after silence, milliseconds of the rate. */
const burst = 2000
/** Devices whose rates are remembered, and as many projects. */
const capacity = 131_072
/**
 * After a pause, this much of a second may be sent, milliseconds. A device that
 * sends without end is read four times a second, not after each message.
 */
const respite = 250

/** Returns what messages take of a second, milliseconds: by their number, or by their bytes if that is more. */
const tokens = (rate: UplinkRate, messages: number, bytes: number): number =>
  1000 * Math.max(messages / rate.messages, bytes / rate.bytes)

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const { device, project } = yield* UplinkRateLimits
  const devices = new TokenBuckets({ burst, capacity })
  const projects = new TokenBuckets({ burst, capacity })
  const counts = yield* SharedCounts
  const activity = yield* ProjectActivity
  const troubles = yield* Troubles
  for (const [name, buckets] of [["uplink/device", devices], ["uplink/project", projects]] as const) {
    yield* counts.share({
      name,
      counted: () => buckets.taken(),
      charge: (key, tokens, now) => buckets.of(key).charge(tokens, now)
    })
  }

  return UplinkRates.of({
    admits: ({ deviceId, projectId }, bytes) => {
      const now = clock.currentTimeMillisUnsafe()
      const ofDevice = devices.of(deviceId)
      const ofProject = projects.of(projectId)
      if (ofDevice.emptyFor(now) > 0 || ofProject.emptyFor(now) > 0) {
        activity.count(projectId, "refused", 1, tooManyRequests.code)
        troubles.note(projectId, "refused", deviceId, String(tooManyRequests.code))
        return false
      }
      ofDevice.take(tokens(device, 1, bytes), now)
      ofProject.take(tokens(project, 1, bytes), now)
      return true
    },
    charge: ({ deviceId, projectId }, messages, bytes) => {
      const now = clock.currentTimeMillisUnsafe()
      devices.of(deviceId).take(tokens(device, messages, bytes), now)
      projects.of(projectId).take(tokens(project, messages, bytes), now)
    },
    pause: ({ deviceId, projectId }) => {
      const now = clock.currentTimeMillisUnsafe()
      const empty = Math.max(devices.of(deviceId).emptyFor(now), projects.of(projectId).emptyFor(now))
      return empty > 0 ? empty + respite : 0
    }
  })
})
