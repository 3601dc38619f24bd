/**
 * A node dies that has held 100,000 of 1,000,000 devices: nobody else feels it.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { connectToDyingNode, heldByDeadNode, storeDevices } from "../../StoredDevices.ts"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

const stored = 1_000_000
const ofDyingNode = 100_000
/** Milliseconds in which the cloud may hold a device for connected whose node has died. */
const maxPresence = 15_000

export const million: Drill = {
  name: "million",
  does: "a node dies that has held 100,000 of 1,000,000 devices, beside 60 that report and get commands",
  forms: ["long"],
  run: () =>
    withLab({ nodes: 2, devices: 60 }, async (lab): Promise<Result> => {
      const { query } = lab.database
      await storeDevices(query, lab.devices[0]!.id, stored)
      await lab.visit()
      lab.report()
      lab.command()
      await connectToDyingNode(query, ofDyingNode)
      const died = Date.now()
      while (await heldByDeadNode(query) > 0) await sleep(250)
      const recovery = Date.now() - died
      return { ...await lab.settle(12_000), recovery, maxRecovery: maxPresence }
    })
}
