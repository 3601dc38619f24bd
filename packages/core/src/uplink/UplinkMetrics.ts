/**
 * The metrics of the uplink.
 */
import { type Context, Metric } from "effect"
import type { CommandProgress } from "../command/Command.ts"
import type { DeviceReply } from "./DeviceReply.ts"

const batchSize = Metric.histogram("device_cloud_uplink_batch_size", {
  description: "Messages committed together",
  boundaries: [1, 4, 16, 64, 256, 1024, 2048]
})
const queueDepth = Metric.gauge("device_cloud_uplink_queue_depth", {
  description: "Messages that wait to be committed"
})
const timesAhead = Metric.counter("device_cloud_uplink_times_ahead_total", {
  description: "Values and events whose time was more than five minutes ahead of the cloud",
  incremental: true
})
const commitSeconds = Metric.histogram("device_cloud_uplink_commit_seconds", {
  description: "From the start of a batch to its commit",
  boundaries: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})

/**
 * Keeps the series of a counter by the value of one attribute. Each is a counter of its own, which knows its key:
 * series by `Metric.withAttributes` share one counter, which makes its key anew (5 µs) when another series was counted.
 */
const seriesOf = (name: string, description: string, attribute: string) => {
  const known = new Map<string | number, Metric.Counter<number>>()
  return (value: string | number): Metric.Counter<number> => {
    let series = known.get(value)
    if (series === undefined) {
      series = Metric.counter(name, { description, incremental: true, attributes: { [attribute]: String(value) } })
      known.set(value, series)
    }
    return series
  }
}

/** Counts replies by code. */
const countCodes = (replies: ReadonlyArray<DeviceReply>): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const { code } of replies) counts.set(code, (counts.get(code) ?? 0) + 1)
  return counts
}

/** Makes the functions that count, in the registry of the context. They are no effects: each count would be two steps of the fiber. */
export const make = (context: Context.Context<never>) => {
  const messagesWith = seriesOf("device_cloud_uplink_messages_total", "Messages of devices, by reply code", "code")
  const stepsTo = seriesOf("device_cloud_commands_total", "Steps of commands, by the state that they lead to", "state")
  return {
    /** A batch of `size` items is stored after so many seconds; `waiting` items wait for the next. */
    committed: (seconds: number, size: number, waiting: number): void => {
      commitSeconds.updateUnsafe(seconds, context)
      batchSize.updateUnsafe(size, context)
      queueDepth.updateUnsafe(waiting, context)
    },
    /** The messages of a batch have these replies, and commands have taken these steps; so many times were ahead. */
    concluded: (
      progress: ReadonlyArray<CommandProgress>,
      replies: ReadonlyArray<DeviceReply>,
      ahead: number
    ): void => {
      if (ahead > 0) timesAhead.updateUnsafe(ahead, context)
      for (const { state } of progress) stepsTo(state).updateUnsafe(1, context)
      for (const [code, count] of countCodes(replies)) messagesWith(code).updateUnsafe(count, context)
    }
  }
}
