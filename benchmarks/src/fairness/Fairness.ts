/**
 * `fairness`: each attack beside bystanders of another project, on the reference
 * server as it starts, in memory and on PostgreSQL.
 */
import { getPriority, setPriority } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { withDatabase } from "../Database.ts"
import { type Helper, load, withDirectory, withHelper } from "../Processes.ts"
import type { Attack } from "./Attack.ts"
import type { AttackingPlan, Counts } from "./Attacking.ts"
import { attacks } from "./Attacks.ts"
import type { BystandersPlan, Seen } from "./Bystanders.ts"
import { ownerKey, startReferenceServer } from "../ReferenceServer.ts"
import { type CloudAddress, Owner, Tenant } from "../Tenant.ts"
import { openFiles, residentBytes } from "./Watch.ts"

/** Where the cloud keeps what it knows. */
export const storages = ["memory", "PostgreSQL"] as const
export type Storage = typeof storages[number]

/** What one attack did on one storage. Bytes and milliseconds. */
export interface Finding {
  readonly attack: string
  readonly storage: Storage
  readonly quiet: Seen
  readonly attacked: Seen
  /** The most that the server used before the attack, and during it. */
  readonly quietBytes: number
  readonly peakBytes: number
  /** Until memory and sockets were given back; undefined: not within a minute. */
  readonly givenBackMillis: number | undefined
  readonly leftBytes: number
  readonly leftFiles: number
  readonly counts: Counts
  /** Sentences; empty: all bars hold. */
  readonly missed: ReadonlyArray<string>
}

const bars = { ratio: 5, millis: 250, memory: 1.5 }
/** Given back: at most so many times the quiet memory, and so many files more. */
const givenBack = { memory: 1.2, files: 20 }
const millis = { settle: 3000, quiet: 10_000, attack: 20_000, watch: 250, recovery: 60_000 }
/** An attack ends early above this, for the sake of the machine. */
const maxBytes = 3 * 2 ** 30
/** Reports before the measure, as of a server in use: 100 devices for ten seconds. */
const warmUp = { devices: 100, perSecond: 2000, warmupMillis: 0, measureMillis: 10_000 }

/** How much nicer the attacker's process is than this one. */
const lowerPriority = 10

/** Runs the reference server while `use` runs. */
const withReferenceServer = <A>(
  databaseUrl: string | undefined,
  use: (server: CloudAddress & { readonly pid: number }) => Promise<A>
): Promise<A> =>
  withDirectory(async (directory) => {
    const { end, pid, said } = await startReferenceServer({ directory, databaseUrl })
    try {
      return await use({ ...said, pid })
    } finally {
      await end("SIGTERM")
    }
  })

/** Watches the memory of a process until `isOver`. */
const watch = async (
  pid: number,
  duration: number
): Promise<{ readonly bytes: ReadonlyArray<number>; readonly ended?: string }> => {
  const bytes: Array<number> = []
  const until = performance.now() + duration
  while (performance.now() < until) {
    const now = await residentBytes(pid)
    if (now === undefined) return { bytes, ended: "the server died" }
    bytes.push(now)
    if (now > maxBytes) return { bytes, ended: "ended early: the server used more than 3 GiB" }
    await sleep(millis.watch)
  }
  return { bytes }
}

/** Waits until what the attack took is given back. */
const recover = async (pid: number, quietBytes: number, quietFiles: number) => {
  const from = performance.now()
  while (true) {
    const bytes = await residentBytes(pid) ?? Number.NaN
    const files = await openFiles(pid) - quietFiles
    const passed = performance.now() - from
    const left = { leftBytes: bytes, leftFiles: files }
    if (bytes <= quietBytes * givenBack.memory && files <= givenBack.files) return { givenBackMillis: passed, ...left }
    if (passed >= millis.recovery || Number.isNaN(bytes)) return { givenBackMillis: undefined, ...left }
    await sleep(1000)
  }
}

/** The bars that a finding misses, as sentences. */
const judge = (
  attack: Attack,
  { attacked, counts, givenBackMillis, peakBytes, quiet, quietBytes }: Omit<Finding, "missed">
) => {
  const missed: Array<string> = []
  for (const kind of ["posts", "requests", "connects"] as const) {
    for (const seen of [quiet, attacked]) {
      for (const [reason, n] of Object.entries(seen[kind].failed)) missed.push(`${n} ${kind} failed: ${reason}`)
    }
  }
  for (const kind of ["posts", "requests"] as const) {
    const { p99 } = attacked[kind]
    if (p99 > bars.ratio * quiet[kind].p99) {
      missed.push(`${kind}: p99 ${(p99 / quiet[kind].p99).toFixed(1)} times the quiet one`)
    }
    if (p99 > bars.millis) missed.push(`${kind}: p99 ${p99.toFixed(0)} ms`)
  }
  if (attacked.connects.p99 > bars.millis) missed.push(`connects: p99 ${attacked.connects.p99.toFixed(0)} ms`)
  if (peakBytes > bars.memory * quietBytes) {
    missed.push(`memory ${(peakBytes / quietBytes).toFixed(1)} times the quiet one`)
  }
  if (givenBackMillis === undefined) missed.push("not given back within a minute")
  for (const [name, limit] of Object.entries(attack.limits ?? {})) {
    if ((counts[name] ?? 0) > limit) missed.push(`${counts[name]} ${name}, more than ${limit}`)
  }
  return missed
}

const runAttack = (attack: Attack, databaseUrl: string | undefined): Promise<Finding> =>
  withReferenceServer(databaseUrl, async ({ http, mqtt, mqtts, pid }) => {
    const owner = new Owner({ http, mqtt, mqtts, key: ownerKey })
    const cloud = await owner.createTenant("Bystanders")
    const bystanding = new Tenant(cloud)
    const devices = await bystanding.createDevices(await bystanding.createProduct("Bystanders"), warmUp.devices + 2)
    const [posting, connecting, ...rest] = devices as [typeof devices[0], typeof devices[0], ...typeof devices]
    await load({
      port: Number(new URL(mqtt).port),
      devices: rest,
      job: { kind: "ingest", qos: 1, window: 1, subscribe: false, ...warmUp }
    })
    // The description is made when it is wanted for the first time, which takes 0.2 s.
    await (await fetch(`${http}/openapi.json`)).arrayBuffer()
    const bystandersPlan: BystandersPlan = { cloud, viewer: await bystanding.createKey("viewer"), posting, connecting }
    const attackingPlan: AttackingPlan = {
      attack: attack.name,
      cloud: await owner.createTenant("Attackers"),
      bystander: { productKey: connecting.productKey, deviceName: connecting.deviceName }
    }
    return withHelper("./fairness/Bystanders", bystandersPlan, async (bystanders) => {
      let quietFiles = 0
      const measure = async (attacker: Helper) => {
        // The attack comes from elsewhere: it takes no processor from the others.
        setPriority(attacker.pid, getPriority() + lowerPriority)
        await attacker.ask("prepare")
        await sleep(millis.settle)
        await bystanders.ask<Seen>("take")
        const quietBytes = Math.max(...(await watch(pid, millis.quiet)).bytes)
        const quiet = await bystanders.ask<Seen>("take")
        quietFiles = await openFiles(pid)
        await attacker.ask("begin")
        const { bytes, ended } = await watch(pid, millis.attack)
        const attacked = await bystanders.ask<Seen>("take")
        const counts = await attacker.ask<Counts>("counts")
        return { ended, quiet, attacked, counts, quietBytes, peakBytes: Math.max(...bytes) }
      }
      const { ended, ...measured } = await withHelper("./fairness/Attacking", attackingPlan, measure)
      const finding = {
        attack: attack.name,
        storage: databaseUrl === undefined ? storages[0] : storages[1],
        ...measured,
        ...await recover(pid, measured.quietBytes, quietFiles)
      }
      return { ...finding, missed: [...ended === undefined ? [] : [ended], ...judge(attack, finding)] }
    })
  })

/** The names of all attacks. */
export const attackNames = attacks.map(({ name }) => name)

/** Runs the named attacks on each storage, each on a server of its own, and tells each finding. */
export const fairness = async (
  names: ReadonlyArray<string>,
  storages: ReadonlyArray<Storage>,
  onFinding: (finding: Finding) => void
): Promise<ReadonlyArray<Finding>> => {
  const findings: Array<Finding> = []
  for (const attack of attacks.filter(({ name }) => names.includes(name))) {
    for (const storage of storages) {
      const finding = storage === "memory"
        ? await runAttack(attack, undefined)
        : await withDatabase((databaseUrl) => runAttack(attack, databaseUrl))
      findings.push(finding)
      onFinding(finding)
    }
  }
  return findings
}
