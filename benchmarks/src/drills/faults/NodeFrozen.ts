/**
 * A node stands still and comes back. Some of its devices go to the other one, some wait for it.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

export const nodeFrozen: Drill = {
  name: "node-frozen",
  does: "a node stands still for 20 s and comes back; half of its devices go to the other one meanwhile",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: form === "short" ? 20 : 60 }, async (lab): Promise<Result> => {
      const [frozen, left] = [lab.nodes[0]!, lab.nodes[1]!]
      await lab.visit()
      lab.report()
      lab.command([() => left])
      let recovery = 0
      for (let round = 0; round < (form === "short" ? 1 : 3); round++) {
        await sleep(1000)
        frozen.freeze()
        await sleep(2000)
        for (const [place, device] of lab.devices.entries()) {
          if (device.current?.node === frozen && place % 4 === 0) device.connect(left)
        }
        await sleep(form === "short" ? 10_000 : 18_000)
        frozen.thaw()
        recovery = Math.max(recovery, await lab.recovered(Date.now()))
      }
      return { ...await lab.settle(form === "short" ? 2000 : 12_000), recovery }
    })
}
