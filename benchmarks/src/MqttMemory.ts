/**
 * `mqtt-memory`: resident bytes of an idle, authenticated connection with its
 * subscriptions.
 */
import { execFileSync } from "node:child_process"
import { setTimeout } from "node:timers/promises"
import type { Part } from "./Comparison.ts"
import type { LoadDevice } from "./Load.ts"
import { hold, withServer } from "./Processes.ts"

const connections = 10_000
const subscriptions = ["thing/event/property/post_reply", "thing/service/property/set", "thing/event/+/post_reply"]

interface Said {
  readonly port: number
  readonly pid: number
}

const residentBytes = async (pid: number): Promise<number> => {
  for (let i = 0; i < 3; i++) {
    process.kill(pid, "SIGUSR2")
    await setTimeout(1000)
  }
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) * 1024
}

/** Measures the bytes of one connection when all are open. */
const bytesPerConnection = async ({ pid, port }: Said, devices: ReadonlyArray<LoadDevice>): Promise<number> => {
  const before = await residentBytes(pid)
  return hold(
    { port, devices, job: { kind: "hold", subscriptions } },
    async () => Math.round((await residentBytes(pid) - before) / connections)
  )
}

const bytes: Part = async () => {
  const collecting = ["--expose-gc", "--import", new URL("./CollectOnSignal.js", import.meta.url).href]
  const plan = JSON.stringify({ devices: connections })
  const { devices, ours } = await withServer("./Cloud", [plan], async (
    said: Said & { readonly devices: ReadonlyArray<LoadDevice> }
  ) => ({ devices: said.devices, ours: await bytesPerConnection(said, said.devices) }), { nodeOptions: collecting })
  const theirs = await withServer("./BareBroker", [], (said: Said) => bytesPerConnection(said, devices), {
    nodeOptions: collecting
  })
  return [{
    benchmark: "mqtt-memory",
    scenario: `${connections} connections, bytes of each`,
    reference: "bare aedes",
    ours: { value: ours },
    theirs: { value: theirs },
    // At most 1.3 times as much as the reference.
    ratio: theirs / ours,
    bar: 1 / 1.3
  }]
}

export const mqttMemory: ReadonlyArray<Part> = [bytes]
