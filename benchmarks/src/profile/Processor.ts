/**
 * The processor time of other processes, as Linux counts it.
 */
import { readdirSync, readFileSync } from "node:fs"

/** The unit of times in `/proc`. */
const microsPerTick = 10_000

/** The fields of a `stat` file after the name of the program. */
const fieldsOf = (path: string): ReadonlyArray<number> => {
  try {
    const stat = readFileSync(path, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 4).split(" ").map(Number)
  } catch {
    // It has ended meanwhile.
    return []
  }
}

/** Microseconds of processor time of a process, its children, and those children that have ended. */
export const familyMicros = (parent: number): number => {
  const micros = (fields: ReadonlyArray<number>, until: number) =>
    fields.slice(10, until).reduce((sum, ticks) => sum + ticks, 0) * microsPerTick
  let sum = micros(fieldsOf(`/proc/${parent}/stat`), 14)
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    const fields = fieldsOf(`/proc/${name}/stat`)
    if (fields[0] === parent) sum += micros(fields, 12)
  }
  return sum
}

/** The threads of this process. */
export const threads = (): ReadonlyArray<number> => readdirSync("/proc/self/task").map(Number)

export interface ThreadTime {
  readonly userMicros: number
  /** In the kernel. */
  readonly systemMicros: number
}

/** The processor time of a thread of this process. */
export const threadTime = (thread: number): ThreadTime => {
  const [user = 0, system = 0] = fieldsOf(`/proc/self/task/${thread}/stat`).slice(10, 12)
  return { userMicros: user * microsPerTick, systemMicros: system * microsPerTick }
}
