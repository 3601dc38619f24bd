/**
 * Devices move between nodes while commands flow, also there and back within 2 ms.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import type { Lab } from "../Lab.ts"
import { withLab } from "../Lab.ts"

/** Milliseconds between two moves of a device, at most. */
const stay = 400
const millisThereAndBack = 2

/** Moves the devices for a time. The cloud ends the connections that they leave. */
export const move = (lab: Lab, duration: number): Promise<unknown> => {
  const end = performance.now() + duration
  const [a, b] = [lab.nodes[0]!, lab.nodes[1]!]
  return Promise.all(lab.devices.map(async (device) => {
    while (performance.now() < end) {
      await sleep(Math.random() * stay)
      const [here, there] = device.current?.node === a ? [a, b] : [b, a]
      device.connect(there)
      if (Math.random() < 0.3) {
        await sleep(millisThereAndBack)
        device.connect(here)
      }
      await device.untilConnected()
    }
  }))
}

export const moves: Drill = {
  name: "moves",
  does: "devices move between two nodes while commands flow, also there and back within 2 ms",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: 20 }, async (lab): Promise<Result> => {
      await lab.visit()
      lab.report()
      lab.command()
      await move(lab, form === "short" ? 5000 : 60_000)
      const counts = await lab.settle(1000)
      // Each device replies on the connection that a command came on, until the cloud ends it.
      return { ...counts, missed: counts.needless > 0 ? [`${counts.needless} commands came again needlessly`] : [] }
    })
}
