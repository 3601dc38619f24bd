/**
 * Loaded before a server whose processor time is measured: from one SIGUSR2 to the next it counts the time, and takes
 * a profile if it shall. The load sends the signals, so that they enclose what it counts.
 */
import { renameSync, writeFileSync } from "node:fs"
import { type Profiler, Session } from "node:inspector"
import { familyMicros, threads, type ThreadTime, threadTime } from "./Processor.ts"

export interface RecordPlan {
  /** The file that gets the {@link Recording}. */
  readonly to: string
  /** The process of PostgreSQL that listens. */
  readonly database?: number
  readonly hasProfile: boolean
}

/** Microseconds of processor time between the signals. */
export interface Recording {
  /** This process without what the profiler takes on a thread of its own. */
  readonly process: number
  /** The thread that runs JavaScript. */
  readonly main: ThreadTime
  readonly database: number
  readonly profile?: Profiler.Profile
}

const plan = JSON.parse(decodeURIComponent(new URL(import.meta.url).search.slice(1))) as RecordPlan

/** Microseconds between samples. */
const interval = 250

const session = new Session()
session.connect()
let profilers: ReadonlyArray<number> = []
let atStart: Recording | undefined

const now = (): Recording => {
  const { system, user } = process.cpuUsage()
  const profiler = profilers.map(threadTime).reduce((sum, time) => sum + time.userMicros + time.systemMicros, 0)
  return {
    process: user + system - profiler,
    main: threadTime(process.pid),
    database: plan.database === undefined ? 0 : familyMicros(plan.database)
  }
}

const since = (start: Recording): Recording => {
  const end = now()
  return {
    process: end.process - start.process,
    main: {
      userMicros: end.main.userMicros - start.main.userMicros,
      systemMicros: end.main.systemMicros - start.main.systemMicros
    },
    database: end.database - start.database
  }
}

const keep = (recording: Recording): void => {
  writeFileSync(`${plan.to}.part`, JSON.stringify(recording))
  renameSync(`${plan.to}.part`, plan.to)
}

const start = (): void => {
  if (plan.hasProfile) {
    const before = new Set(threads())
    session.post("Profiler.enable")
    session.post("Profiler.setSamplingInterval", { interval })
    session.post("Profiler.start")
    profilers = threads().filter((thread) => !before.has(thread))
  }
  atStart = now()
}

process.on("SIGUSR2", () => {
  if (atStart === undefined) return start()
  const recording = since(atStart)
  if (!plan.hasProfile) return keep(recording)
  session.post("Profiler.stop", (error, answer) => {
    if (error !== null) throw error
    keep({ ...recording, profile: answer.profile })
  })
})
