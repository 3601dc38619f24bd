/**
 * What others took of the machine: the processor time that went neither to this
 * process nor to those that it has started, and the time that the hypervisor took.
 */
import { readdirSync, readFileSync } from "node:fs"

/** Ticks of the processor's clock since the machine has started. */
interface Reading {
  /** What processes took. */
  readonly all: number
  /** What ours took that run still, and those that they have waited for. */
  readonly own: number
  /** What the hypervisor took. */
  readonly stolen: number
  /** The time of all cores, idle or not. */
  readonly total: number
}

/** A row of which others took more than this part of the machine is spoilt. */
export const tolerated = 0.05

interface Process {
  readonly parent: number
  readonly isKernel: boolean
  /** Its own, and those of its children that have ended. */
  readonly ticks: number
}

const processes = (): ReadonlyMap<number, Process> => {
  const found = new Map<number, Process>()
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number)
      const [, parent = 0] = fields
      found.set(Number(name), {
        parent,
        isKernel: stat.includes("(kthreadd)"),
        // utime, stime, cutime, cstime
        ticks: fields[11]! + fields[12]! + fields[13]! + fields[14]!
      })
    } catch {
      // It has ended meanwhile.
    }
  }
  return found
}

/** What this process took, what it has started, and the threads of the kernel, which write to the disk for them. */
const ownTicks = (all: ReadonlyMap<number, Process>): number => {
  const isOwn = (pid: number): boolean => {
    const found = all.get(pid)
    return found !== undefined && (pid === process.pid || found.isKernel || isOwn(found.parent))
  }
  let ticks = 0
  for (const [pid, found] of all) if (isOwn(pid)) ticks += found.ticks
  return ticks
}

const read = (): Reading => {
  const stat = readFileSync("/proc/stat", "latin1")
  const [user, nice, system, idle, waiting, irq, softirq, stolen] = stat.slice(0, stat.indexOf("\n")).trim()
    .split(/ +/).slice(1).map(Number) as [number, number, number, number, number, number, number, number]
  return {
    all: user + nice + system,
    own: ownTicks(processes()),
    stolen,
    // Interrupts are mostly ours: packets on the loopback interface.
    total: user + nice + system + idle + waiting + irq + softirq + stolen
  }
}

/** Milliseconds between two readings. */
const readEvery = 2000

/** Adds up what came between readings. */
const makeGauge = () => {
  let last = read()
  let [taken, total] = [0, 0]
  const look = () => {
    const now = read()
    // Ours become less when one ends whose parent has ended before, as those of a browser do.
    const own = Math.max(0, now.own - last.own)
    taken += Math.max(0, now.all - last.all - own) + now.stolen - last.stolen
    total += now.total - last.total
    last = now
  }
  return { look, part: () => taken / Math.max(1, total) }
}

const isLinux = process.platform === "linux"

/**
 * Runs `use`, and says with its result which part of the machine's processor time
 * others took meanwhile, 0 to 1. Where that cannot be known (not on Linux), it is 0.
 */
export const withOthers = async <A>(
  use: () => Promise<A>
): Promise<{ readonly value: A; readonly others: number }> => {
  if (!isLinux) return { value: await use(), others: 0 }
  const gauge = makeGauge()
  const looking = setInterval(gauge.look, readEvery)
  try {
    const value = await use()
    gauge.look()
    return { value, others: gauge.part() }
  } finally {
    clearInterval(looking)
  }
}
