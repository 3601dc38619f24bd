/**
 * Nodes of the version before and of this one work side by side on one database.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

/** Where the server is built in a checkout: the present place, and that of versions before 0.2. */
const programs = ["packages/server/dist/main", "examples/server/dist/main"]

/** The server of the version before, in the built checkout that `PREVIOUS_VERSION` names. */
const previous = (): string | undefined => {
  const checkout = process.env["PREVIOUS_VERSION"]
  return checkout === undefined
    ? undefined
    : programs.map((program) => join(checkout, program)).find((program) => existsSync(`${program}.js`))
}

export const upgrade: Drill = {
  name: "upgrade",
  does:
    "two nodes of the version before become this version, one after the other, and one goes back (`PREVIOUS_VERSION` names a built checkout)",
  forms: ["short", "long"],
  run: async (form): Promise<Result | undefined> => {
    const program = previous()
    if (program === undefined) return undefined
    return withLab({ nodes: 2, devices: form === "short" ? 30 : 200, node: () => ({ program }) }, async (lab) => {
      const [first, second] = [lab.nodes[0]!, lab.nodes[1]!]
      await lab.visit()
      lab.report()
      lab.command()
      let recovery = 0
      for (const [node, next] of [[first, undefined], [second, undefined], [first, program]] as const) {
        await sleep(form === "short" ? 1500 : 10_000)
        const at = Date.now()
        await node.end("SIGTERM")
        recovery = Math.max(recovery, await lab.recovered(at))
        node.become(next)
        await node.start()
        // Some go to the node that has come back.
        for (const [place, device] of lab.devices.entries()) if (place % 2 === 0) device.connect(node)
      }
      await sleep(form === "short" ? 1500 : 10_000)
      return { ...await lab.settle(2000), recovery, maxRecovery: 5000 }
    })
  }
}
