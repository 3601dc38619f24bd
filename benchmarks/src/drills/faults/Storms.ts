/**
 * All devices come back at once.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { until, withLab } from "../Lab.ts"

/** Devices of a storm, by scheme and form. */
const devices = { mqtt: { short: 500, long: 5000 }, mqtts: { short: 150, long: 4000 } }
/** Devices that connect at a time before the storm. */
const atOnce = 100
const maxMillis = 60_000

const storm = (scheme: "mqtt" | "mqtts", name: string, does: string): Drill => ({
  name,
  does,
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: devices[scheme][form], scheme }, async (lab): Promise<Result> => {
      for (let from = 0; from < lab.devices.length; from += atOnce) {
        const some = lab.devices.slice(from, from + atOnce)
        for (const [place, device] of some.entries()) device.connect(lab.nodes[place % 2])
        await Promise.all(some.map((device) => device.untilConnected()))
      }
      lab.report(2000)
      let recovery = 0
      for (let round = 0; round < (form === "short" ? 1 : 3); round++) {
        await sleep(3000)
        const at = Date.now()
        for (const { open } of lab.devices) for (const { socket } of open) socket.destroy()
        await until(() => lab.devices.every(({ current }) => (current?.from ?? 0) > at), maxMillis)
        recovery = Math.max(recovery, await lab.recovered(at))
      }
      return { ...await lab.settle(form === "short" ? 1000 : 12_000), recovery, maxRecovery: maxMillis }
    })
})

export const stormOfConnects: Drill = storm(
  "mqtt",
  "storm",
  "5,000 connections break, and all devices come back at once"
)

export const stormOfHandshakes: Drill = storm(
  "mqtts",
  "storm-tls",
  "4,000 connections over TLS break, and all devices come back at once"
)
