/**
 * Nodes whose clocks are wrong, and one that jumps.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

const preload = fileURLToPath(new URL("../WrongClock.js", import.meta.url))
const offsets = ["20000", "-20000", "0,3600000,0"]

export const wrongClocks: Drill = {
  name: "wrong-clocks",
  does: "one node is 20 s fast, one 20 s slow, and the clock of a third jumps an hour ahead and back",
  forms: ["short", "long"],
  run: (form) =>
    withLab({
      nodes: offsets.length,
      devices: 12,
      node: (place) => ({ nodeOptions: ["--import", preload], env: { CLOCK_OFFSETS: offsets[place]! } })
    }, async (lab): Promise<Result> => {
      const jumping = lab.nodes[2]!
      await lab.visit()
      lab.report()
      lab.command()
      await sleep(form === "short" ? 2000 : 20_000)
      for (let jump = 0; jump < 2; jump++) {
        jumping.signal("SIGUSR2")
        await sleep(form === "short" ? 4000 : 40_000)
      }
      return lab.settle(form === "short" ? 4000 : 15_000)
    })
}
