/**
 * What a run was measured on.
 */
import { execFileSync } from "node:child_process"
import { arch, cpus, platform, totalmem } from "node:os"

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  readonly node: string
  /** With `-dirty` if files differ from it. */
  readonly commit: string
}

export const thisMachine = (): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${platform()} ${arch()}`,
  node: process.version,
  commit: execFileSync("git", ["describe", "--always", "--dirty", "--exclude=*"], { encoding: "utf8" }).trim()
})

export const textOf = ({ commit, cores, cpu, memoryGiB, node, system }: Machine): string =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node.js ${node}, commit ${commit}`
