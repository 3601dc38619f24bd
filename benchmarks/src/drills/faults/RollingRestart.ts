/**
 * Two nodes are restarted one after the other, as an upgrade does it.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

export const rollingRestart: Drill = {
  name: "rolling-restart",
  does: "two nodes end by SIGTERM and start again, one after the other",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: form === "short" ? 30 : 200 }, async (lab): Promise<Result> => {
      await lab.visit()
      lab.report()
      lab.command()
      let recovery = 0
      for (let round = 0; round < (form === "short" ? 1 : 5); round++) {
        for (const node of lab.nodes) {
          await sleep(1500)
          const at = Date.now()
          await node.end("SIGTERM")
          recovery = Math.max(recovery, await lab.recovered(at))
          await node.start()
        }
      }
      return { ...await lab.settle(2000), recovery, maxRecovery: 5000 }
    })
}
