/**
 * The processor time that servers use, as Linux counts it: it stays the same when
 * others use the machine too, while the rate falls.
 */
import { readFile } from "node:fs/promises"
import { setTimeout } from "node:timers/promises"
import type { Query } from "../Database.ts"
import type { Figures } from "./Curve.ts"

/** Linux counts in hundredths of a second. */
const microsOfTick = 10_000

const lookMillis = 50

/** Times from `/proc`: of the process itself, and of its children that have ended. */
const ticksOf = async (pid: number): Promise<readonly [own: number, ended: number]> => {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number)
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
  return [user + system, endedUser + endedSystem]
}

/** Microseconds of a process and all its children. */
const processorMicros = async (pid: number): Promise<number> => {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).split(" ").filter(Boolean).map(Number)
  const [own, ended] = await ticksOf(pid)
  const living = await Promise.all(children.map(ticksOf))
  return (own + ended + living.reduce((sum, [ticks]) => sum + ticks, 0)) * microsOfTick
}

/** The processes that a load costs. */
export interface Costly {
  readonly server: number
  /** The process of PostgreSQL that listens; its children are counted too. */
  readonly database?: number | undefined
}

/** Finds out the process of PostgreSQL that listens. */
export const listeningProcess = async (query: Query): Promise<number> => {
  const [row] = await query("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid")
  return Number(row!["pid"])
}

const used = async ({ database, server }: Costly) => ({
  server: await processorMicros(server),
  database: database === undefined ? 0 : await processorMicros(database)
})

interface Spent {
  readonly seconds: number
  readonly count: number
  /** Microseconds. */
  readonly server: number
  readonly database: number
}

const spent = async (
  costly: Costly,
  count: () => Promise<number>,
  run: () => Promise<unknown>
): Promise<Spent> => {
  const [from, before, counted] = [performance.now(), await used(costly), await count()]
  await run()
  const [after, until, counts] = [await used(costly), performance.now(), await count()]
  return {
    seconds: (until - from) / 1000,
    count: counts - counted,
    server: after.server - before.server,
    database: after.database - before.database
  }
}

/** What server and PostgreSQL use during `millis`, milliseconds of a core in a second. */
export const useOfCore = async (costly: Costly, millis: number): Promise<Figures> => {
  const { database, seconds, server } = await spent(costly, () => Promise.resolve(0), () => setTimeout(millis))
  return {
    idleServer: server / seconds / 1000,
    ...costly.database === undefined ? {} : { idleDatabase: database / seconds / 1000 }
  }
}

/** Waits until the server and PostgreSQL have used so many milliseconds of the processor: on a busy machine it takes longer. */
export const untilUsed = async (costly: Costly, millis: number): Promise<void> => {
  const { database, server } = await used(costly)
  while (true) {
    await setTimeout(lookMillis)
    const now = await used(costly)
    if (now.server + now.database - server - database >= millis * 1000) return
  }
}

/** Microseconds for each of what `count` counts: `server`, `database`, and how many a second. */
export const costOfEach = async (
  costly: Costly,
  count: () => Promise<number>,
  run: () => Promise<unknown>
): Promise<Figures> => {
  const { count: counted, database, seconds, server } = await spent(costly, count, run)
  if (counted === 0) throw new Error("nothing was counted")
  return {
    server: server / counted,
    ...costly.database === undefined ? {} : { database: database / counted },
    perSecond: counted / seconds
  }
}

/** Microseconds of the server and PostgreSQL together for each of the requests, one after the other. */
export const costOfRequests = async (costly: Costly, millis: number, request: () => Promise<void>): Promise<number> => {
  let count = 0
  const load = { isOver: false }
  const { database = 0, server } = await costOfEach(costly, () => Promise.resolve(count), async () => {
    const over = untilUsed(costly, millis).then(() => load.isOver = true)
    while (!load.isOver) {
      await request()
      count++
    }
    await over
  }) as { readonly server: number; readonly database?: number }
  return server + database
}
