/**
 * What an operation costs, by stage.
 */
import type { Recording } from "./RecordOnSignal.ts"
import type { Profile } from "./Profile.ts"
import { type Stage, stages } from "./Stages.ts"

/** A measured time and the operations that were counted in it. */
export interface Counted {
  readonly count: number
  readonly recording: Recording
}

/** Microseconds of processor time for one operation. */
export interface Budget {
  readonly stages: ReadonlyMap<Stage, number>
  /** All of the server, and of PostgreSQL. */
  readonly total: number
}

/**
 * Divides what `plain` has cost as the profile of `profiled` says, which itself has cost more. What the kernel does for
 * the main thread is known without the profile; so is what its own code takes beside JavaScript, which is no function of
 * the profile: that is `native`.
 */
export const budgetOf = (plain: Counted, profiled: Counted, profile: Profile, native: Stage): Budget => {
  const { database, main, process } = plain.recording
  const javaScript = [...profile.stages.values()].reduce((sum, micros) => sum + micros, 0)
  const { userMicros } = profiled.recording.main
  const part = Math.min(1, javaScript / userMicros) * main.userMicros / javaScript
  const micros = new Map<Stage, number>([...profile.stages].map(([stage, time]) => [stage, time * part]))
  const add = (stage: Stage, time: number) => micros.set(stage, (micros.get(stage) ?? 0) + time)
  add("system calls", main.systemMicros)
  add(native, main.userMicros - javaScript * part)
  add("other threads", Math.max(0, process - main.userMicros - main.systemMicros))
  add("PostgreSQL", database)
  return {
    stages: new Map(stages.flatMap((stage) => micros.has(stage) ? [[stage, micros.get(stage)! / plain.count]] : [])),
    total: (process + database) / plain.count
  }
}
