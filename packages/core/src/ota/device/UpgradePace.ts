/**
 * Keeps tasks to their `maximumPerMinute` when devices do not come as planned:
 * after an outage, the devices of many minutes are due, or come back, at once.
 * See docs/decisions/0018-upgrades-as-records-with-due-times.md.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SharedCounts, type SharedLimit } from "../../cluster/SharedCounts.ts"
import type { OtaTask } from "../task/UpgradeTask.ts"

/** The part of a task that its pace depends on. */
type Paced = Pick<OtaTask, "taskId" | "maximumPerMinute">

export class UpgradePace extends Context.Service<UpgradePace, {
  /**
   * Counts a device of the task as told and returns null, if it may be told now.
   * Otherwise returns when its turn comes, Unix milliseconds. `hasWaited`: the time
   * that it was due at has come, so it does not queue behind those that wait.
   */
  readonly take: (task: Paced, hasWaited: boolean) => number | null
}>()("@device-cloud/core/ota/device/UpgradePace") {
  /** Nodes count together what they tell, but for what they tell within a second. */
  static readonly layer: Layer.Layer<UpgradePace, never, SharedCounts> = Layer.effect(
    UpgradePace,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const { charge, counted, take } = makeUpgradePace()
      yield* (yield* SharedCounts).share({ name: "ota/told", charge, counted })
      return { take: (task, hasWaited) => take(task, clock.currentTimeMillisUnsafe(), hasWaited) }
    })
  )
}

const minute = 60_000

/** What a task has told within a minute. */
interface Told {
  /** How many devices in each second, the oldest first. `at`: when the last of them was told, Unix milliseconds. */
  readonly seconds: Array<{ at: number; devices: number }>
  /** When the turn of the last device comes that waits, Unix milliseconds. */
  queueEnd: number
}

/** Plain functions, so that a test owns the time. `now`: Unix milliseconds. */
export const makeUpgradePace = (): Pick<SharedLimit, "charge" | "counted"> & {
  readonly take: (task: Paced, now: number, hasWaited: boolean) => number | null
} => {
  const tasks = new Map<string, Told>()
  /** What was told here since the other nodes heard of it. */
  const untold = new Map<string, number>()

  const forget = ({ seconds }: Told, now: number) => {
    while (seconds.length > 0 && seconds[0]!.at <= now - minute) seconds.shift()
  }

  const toldBy = (key: string, now: number): Told => {
    const known = tasks.get(key)
    if (known !== undefined) {
      forget(known, now)
      return known
    }
    for (const [other, told] of tasks) {
      forget(told, now)
      if (told.seconds.length === 0 && told.queueEnd <= now) tasks.delete(other)
    }
    const told: Told = { seconds: [], queueEnd: 0 }
    tasks.set(key, told)
    return told
  }

  const charge = (key: string, devices: number, now: number) => {
    const { seconds } = toldBy(key, now)
    const last = seconds.at(-1)
    if (last === undefined || Math.floor(last.at / 1000) < Math.floor(now / 1000)) seconds.push({ at: now, devices })
    else {
      last.at = Math.max(last.at, now)
      last.devices += devices
    }
  }

  return {
    take: ({ maximumPerMinute, taskId }, now, hasWaited) => {
      const key = String(taskId)
      const told = toldBy(key, now)
      const isFull = told.seconds.reduce((sum, { devices }) => sum + devices, 0) >= maximumPerMinute
      if (!isFull && (hasWaited || told.queueEnd <= now)) {
        charge(key, 1, now)
        untold.set(key, (untold.get(key) ?? 0) + 1)
        return null
      }
      const free = isFull ? told.seconds[0]!.at + minute : now
      told.queueEnd = Math.max(told.queueEnd, free) + minute / maximumPerMinute
      return Math.ceil(told.queueEnd)
    },
    charge,
    counted: () => {
      const counted = [...untold]
      untold.clear()
      return counted
    }
  }
}
