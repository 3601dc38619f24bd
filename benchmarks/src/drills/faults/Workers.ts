/**
 * A server has two workers. One of them gets `kill -9` again and again.
 */
import { readFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { until, withLab } from "../Lab.ts"

/** Children of a process that run its program. */
const workersOf = async (pid: number): Promise<ReadonlyArray<number>> => {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim().split(" ").map(Number)
  const programs = await Promise.all(
    children.map((child) => readFile(`/proc/${child}/cmdline`, "utf8").catch(() => ""))
  )
  return children.filter((_, i) => programs[i]!.includes("main.js"))
}

const workers = 2
const millisToStart = 60_000

export const workerKilled: Drill = {
  name: "worker-killed",
  does: "one of two workers of a server gets `kill -9`; its devices come back to the other one",
  forms: ["short", "long"],
  run: (form) =>
    withLab({
      nodes: 1,
      devices: form === "short" ? 20 : 100,
      node: () => ({ env: { WORKERS: String(workers) } })
    }, async (lab): Promise<Result> => {
      const [node] = lab.nodes as [typeof lab.nodes[0]]
      await lab.visit()
      lab.report()
      lab.command()
      let recovery = 0
      for (let round = 0; round < (form === "short" ? 1 : 5); round++) {
        await sleep(2000)
        const at = Date.now()
        process.kill((await workersOf(node!.pid))[round % workers]!, "SIGKILL")
        recovery = Math.max(recovery, await lab.recovered(at))
        await until(async () => (await workersOf(node!.pid)).length === workers, millisToStart)
      }
      return { ...await lab.settle(2000), recovery, maxRecovery: 5000 }
    })
}
