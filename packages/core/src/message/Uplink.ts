/**
 * The one door for everything that a device says.
 */
import { Context, Duration, Effect, type Exit, Layer, Metric, Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { DomainEvent } from "../event/DomainEvent.ts"
import { EventBus } from "../event/EventBus.ts"
import * as GroupCommit from "../GroupCommit.ts"
import { applyReports, type PropertyReport } from "../shadow/Shadow.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { type StoreError, untilStored } from "../StoreError.ts"
import { deviceNotFound, type DeviceReply, success, topicError } from "./DeviceReply.ts"
import { decodePropertyPost } from "./PropertyPost.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

/** Messages that may wait; a transport whose message finds no room stops reading. */
const capacity = 8192
/** Messages in one transaction. */
const maxBatch = 2048

const messages = Metric.counter("device_cloud_uplink_messages_total", {
  description: "Messages of devices, by reply code",
  incremental: true
})
const batchSize = Metric.histogram("device_cloud_uplink_batch_size", {
  description: "Messages committed together",
  boundaries: [1, 4, 16, 64, 256, 1024, 2048]
})
const commitSeconds = Metric.histogram("device_cloud_uplink_commit_seconds", {
  description: "From the start of a batch to its commit",
  boundaries: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})

const propertyPost = "thing.event.property.post"

/** The reports of one device in a batch, and the places of their messages in it. */
interface DeviceReports {
  readonly device: DeviceIdentity
  readonly indices: Array<number>
  readonly reports: Array<PropertyReport>
}

/** The reports in a batch by device; the replies to messages that are none. */
const sort = (batch: ReadonlyArray<UplinkMessage>) => {
  const replies = Array.from<DeviceReply>({ length: batch.length })
  const byDevice = new Map<DeviceId, DeviceReports>()
  for (let index = 0; index < batch.length; index++) {
    const { device, method, params, receivedAt } = batch[index]!
    const decoded = method === propertyPost ? decodePropertyPost(params, receivedAt) : topicError
    if ("code" in decoded) {
      replies[index] = decoded
      continue
    }
    const known = byDevice.get(device.deviceId)
    if (known === undefined) {
      byDevice.set(device.deviceId, { device, indices: [index], reports: [decoded] })
    } else {
      known.indices.push(index)
      known.reports.push(decoded)
    }
  }
  return { replies, byDevice: [...byDevice.values()] }
}

const make = Effect.gen(function*() {
  const shadows = yield* ShadowStore
  const events = yield* EventBus

  const commit = Effect.fnUntraced(function*(batch: ReadonlyArray<UplinkMessage>) {
    const { byDevice, replies } = sort(batch)
    if (byDevice.length === 0) return replies
    const outcomes = yield* shadows.modify(byDevice.map(({ device, reports }) => ({
      deviceId: device.deviceId,
      modify: (shadow) => applyReports(shadow, reports)
    })))
    const reported: Array<DomainEvent> = []
    for (let i = 0; i < byDevice.length; i++) {
      const { device, indices, reports } = byDevice[i]!
      const dropped = Option.getOrUndefined(outcomes[i]!)
      for (let j = 0; j < indices.length; j++) {
        replies[indices[j]!] = dropped === undefined ? deviceNotFound : success(dropped[j]!)
        if (dropped === undefined) continue
        const { properties, receivedAt } = reports[j]!
        reported.push({ _tag: "PropertiesReported", device, at: receivedAt, properties })
      }
    }
    yield* events.publish(reported)
    return replies
  })

  const measured = (batch: ReadonlyArray<UplinkMessage>) =>
    commit(batch).pipe(
      untilStored,
      Effect.timed,
      Effect.flatMap(Effect.fnUntraced(function*([duration, replies]) {
        yield* Metric.update(commitSeconds, Duration.toSeconds(duration))
        yield* Metric.update(batchSize, batch.length)
        for (const [code, count] of countCodes(replies)) {
          yield* Metric.update(Metric.withAttributes(messages, { code: String(code) }), count)
        }
        return replies
      }))
    )

  return yield* GroupCommit.make<UplinkMessage, DeviceReply, StoreError>({
    capacity,
    maxBatch,
    commit: measured,
    isolate: ({ retryable }) => !retryable
  })
})

/** How many replies have which code. */
const countCodes = (replies: ReadonlyArray<DeviceReply>): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const { code } of replies) counts.set(code, (counts.get(code) ?? 0) + 1)
  return counts
}

/**
 * Messages of one device take effect in the order in which they were handed
 * over. The reply comes after the commit; the store being unreachable delays
 * it until the store is back.
 */
export class Uplink extends Context.Service<Uplink, GroupCommit.GroupCommit<UplinkMessage, DeviceReply, StoreError>>()(
  "@device-cloud/core/message/Uplink"
) {
  static readonly layer: Layer.Layer<Uplink, never, ShadowStore | EventBus> = Layer.effect(Uplink, make)
}

export type UplinkExit = Exit.Exit<DeviceReply, StoreError>
