/**
 * The resident memory of a server process after it has collected garbage.
 */
import { execFileSync } from "node:child_process"
import { setTimeout } from "node:timers/promises"

/** Options of Node.js for a process whose memory is measured. */
export const collecting: ReadonlyArray<string> = [
  "--expose-gc",
  "--import",
  new URL("./CollectOnSignal.js", import.meta.url).href
]

/** Bytes of a process. `collects`: it has {@link collecting}. */
export const residentBytes = async (pid: number, collects = true): Promise<number> => {
  for (let i = 0; i < 3; i++) {
    if (collects) process.kill(pid, "SIGUSR2")
    await setTimeout(1000)
  }
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) * 1024
}
