/**
 * `npm run bench -- NAME --profile`: measures what the operations of a benchmark cost by stage, and writes tables and
 * flame graphs into `docs/performance.md`.
 */
import { DevelopmentCertificate } from "@device-cloud/mqtt"
import { Effect } from "effect"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Said } from "../Cloud.ts"
import { withDatabase } from "../Database.ts"
import { withDirectory } from "../Processes.ts"
import { type Machine, textOf } from "../suite/Machine.ts"
import { budgetOf } from "./Budget.ts"
import { flameGraph } from "./FlameGraph.ts"
import { type Certificates, type Floors, measureFloors } from "./Floors.ts"
import { cloudPlan, type Operation, operations } from "./Operations.ts"
import { blockOf, tableOf, writeBlock, writeGraph } from "./Page.ts"
import { readProfile } from "./Profile.ts"
import { listenerOf, recorded } from "./Recorded.ts"

/** V8 has compiled what is hot after this time. */
const times = { warmupMillis: 6000, measureMillis: 6000 }

/** Runs the operation without and with a profile. */
const runsOf = async (operation: Operation, certificates: Certificates) => {
  const run = (hasProfile: boolean, databaseUrl?: string, database?: number) =>
    recorded({
      program: "./Cloud",
      args: [JSON.stringify(cloudPlan(operation, certificates, databaseUrl))],
      plan: (said: Said) => operation.load(said, times, certificates),
      hasProfile,
      ...database === undefined ? {} : { database }
    })
  if (!operation.isDurable) return [await run(false), await run(true)] as const
  return withDatabase(async (url, query) => {
    const listener = await listenerOf(query)
    return [await run(false, url, listener), await run(true, url, listener)] as const
  })
}

const results = new URL("../../results/", import.meta.url)

const profile = async (operation: Operation, floors: Floors, certificates: Certificates): Promise<void> => {
  const [plain, withProfile] = await runsOf(operation, certificates)
  const v8 = withProfile.recording.profile!
  const read = readProfile(v8)
  const budget = budgetOf(plain, withProfile, read, operation.native)
  const own = operation.floors(floors)
  await writeFile(new URL(`${operation.name}.cpuprofile`, results), JSON.stringify(v8))
  await writeGraph(operation, flameGraph(`${operation.title}: the server's JavaScript`, read.root))
  await writeBlock(operation.name, blockOf(operation, budget, own))
  process.stdout.write(`\n${operation.title}\n\n${tableOf(budget, own)}\n`)
}

/** Profiles the operations of the benchmarks. */
export const profileAll = (benchmarks: ReadonlyArray<string>, machine: Machine): Promise<void> =>
  withDirectory(async (directory) => {
    const { authority } = await Effect.runPromise(DevelopmentCertificate.loadOrMake(directory))
    const certificates = {
      certificate: join(directory, "server.pem"),
      key: join(directory, "server.key"),
      authority
    }
    const floors = await measureFloors(certificates)
    await writeFile(fileURLToPath(new URL("floors.json", results)), JSON.stringify(floors, undefined, 2))
    for (const operation of operations) {
      if (benchmarks.includes(operation.benchmark)) await profile(operation, floors, certificates)
    }
    await writeBlock("machine", `${new Date().toISOString().slice(0, 10)}, ${textOf(machine)}.`)
  })
