/**
 * `mqtt-memory`: resident bytes of an idle, authenticated connection with its
 * subscriptions.
 */
import { withMosquitto } from "./brokers/Brokers.ts"
import type { Comparison, Part, Row } from "./Comparison.ts"
import type { LoadDevice } from "./Load.ts"
import { hold, withServer } from "./Processes.ts"
import { collecting, residentBytes } from "./ResidentBytes.ts"

const connections = 10_000
const subscriptions = ["thing/event/property/post_reply", "thing/service/property/set", "thing/event/+/post_reply"]

interface Measurable {
  readonly port: number
  readonly pid: number
  /** Whether it collects garbage on a signal. Default true. */
  readonly collects?: boolean
}

/** Measures the bytes of one connection when all are open. */
const bytesPerConnection = async (server: Measurable, devices: ReadonlyArray<LoadDevice>): Promise<number> => {
  const before = await residentBytes(server.pid, server.collects)
  return hold(
    { port: server.port, devices, job: { kind: "hold", subscriptions } },
    async () => Math.round((await residentBytes(server.pid, server.collects) - before) / connections)
  )
}

const bytes: Part = async () => {
  const plan = JSON.stringify({ devices: connections })
  const { devices, ours } = await withServer("./Cloud", [plan], async (
    said: Measurable & { readonly devices: ReadonlyArray<LoadDevice> }
  ) => ({ devices: said.devices, ours: await bytesPerConnection(said, said.devices) }), { nodeOptions: collecting })
  const theirs = await withServer("./BareBroker", [], (said: Measurable) => bytesPerConnection(said, devices), {
    nodeOptions: collecting
  })
  const row = { benchmark: "mqtt-memory", scenario: `${connections} connections, bytes of each`, ours: { value: ours } }
  const beside = (reference: string, theirs: number): Comparison => ({
    ...row,
    reference,
    theirs: { value: theirs },
    ratio: theirs / ours
  })
  const ofMosquitto = await withMosquitto(async (mosquitto): Promise<Row> =>
    "leftOut" in mosquitto
      ? { ...row, reference: mosquitto.name, leftOut: mosquitto.leftOut }
      : beside(mosquitto.name, await bytesPerConnection({ ...mosquitto, collects: false }, devices))
  )
  // At most 1.3 times as much as the reference.
  return [{ ...beside("bare aedes", theirs), bar: 1 / 1.3 }, ofMosquitto]
}

export const mqttMemory: ReadonlyArray<Part> = [bytes]
