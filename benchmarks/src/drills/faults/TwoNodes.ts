/**
 * Two nodes take commands for the same devices at the same time.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill } from "../Drill.ts"
import { withLab } from "../Lab.ts"

export const twoNodes: Drill = {
  name: "two-nodes",
  does: "two nodes take commands for the same devices at the same time",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: 12 }, async (lab) => {
      await lab.visit()
      lab.report()
      lab.command([() => lab.nodes[0]!, () => lab.nodes[0]!, () => lab.nodes[1]!, () => lab.nodes[1]!], 0)
      await sleep(form === "short" ? 3000 : 30_000)
      return lab.settle(1000)
    })
}
