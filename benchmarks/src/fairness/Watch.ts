/**
 * What the measured server's process uses.
 */
import { execFile } from "node:child_process"
import { readdir } from "node:fs/promises"
import { promisify } from "node:util"

const execute = promisify(execFile)

/** Bytes; undefined: the process has ended. */
export const residentBytes = async (pid: number): Promise<number | undefined> => {
  try {
    return Number((await execute("ps", ["-o", "rss=", "-p", String(pid)])).stdout) * 1024
  } catch {
    return undefined
  }
}

/** Open files and sockets; 0 where the system does not tell. */
export const openFiles = async (pid: number): Promise<number> => {
  try {
    return (await readdir(`/proc/${pid}/fd`)).length
  } catch {
    return 0
  }
}
