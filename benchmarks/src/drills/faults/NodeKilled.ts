/**
 * A node gets `kill -9`. Most of its devices come back at the other one, some stay away.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { until, withLab } from "../Lab.ts"

/** Milliseconds in which the cloud may hold a device for connected whose node has died. */
const maxPresence = 15_000

export const nodeKilled: Drill = {
  name: "node-killed",
  does: "a node gets `kill -9`; most of its devices come back at the other one, some stay away",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: form === "short" ? 24 : 100 }, async (lab): Promise<Result> => {
      const [dying, left] = [lab.nodes[0]!, lab.nodes[1]!]
      await lab.visit()
      lab.report()
      lab.command([() => left])
      let recovery = 0
      const missed: Array<string> = []
      for (let round = 0; round < (form === "short" ? 1 : 5); round++) {
        await sleep(2000)
        const held = lab.devices.filter(({ current }) => current?.node === dying)
        const away = held.filter((_, place) => place % 4 === 0)
        const at = Date.now()
        await dying.end("SIGKILL")
        for (const device of away) device.leave()
        const others = lab.devices.filter((device) => !away.includes(device))
        recovery = Math.max(recovery, await lab.recovered(at, others))
        const areOffline = async () =>
          (await Promise.all(away.map((device) => lab.status(device)))).every((status) => status === "offline")
        if (!await until(areOffline, maxPresence - (Date.now() - at))) missed.push("presence is not true after 15 s")
        await dying.start()
        for (const device of away) device.connect(dying)
        for (const device of others.slice(0, others.length / 2)) device.connect(dying)
      }
      await lab.recovered(Date.now())
      return { ...await lab.settle(2000), recovery, maxRecovery: 5000, missed }
    })
}
