/**
 * Runs a load against a server that records its processor time.
 */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Query } from "../Database.ts"
import type { LoadPlan } from "../Load.ts"
import { load, withDirectory, withServer } from "../Processes.ts"
import type { Counted } from "./Budget.ts"
import type { Recording, RecordPlan } from "./RecordOnSignal.ts"

/** The parts of a load's plan that are measured. */
export type MeasuredJob = Exclude<LoadPlan["job"], { readonly kind: "hold" }>

export interface RecordedOptions<Said> {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly hasProfile: boolean
  /** The process of PostgreSQL that listens. */
  readonly database?: number
  readonly plan: (said: Said) => LoadPlan & { readonly job: MeasuredJob }
}

/** Returns the process of PostgreSQL that listens. */
export const listenerOf = async (query: Query): Promise<number> => {
  const [row] = await query("SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int AS pid")
  return row!["pid"] as number
}

/** The server writes when it gets the second signal, or when it has the time. */
const read = async (file: string): Promise<Recording> => {
  for (;;) {
    try {
      return JSON.parse(await readFile(file, "utf8")) as Recording
    } catch {
      await sleep(50)
    }
  }
}

export const recorded = <Said>(
  { args, database, hasProfile, plan, program }: RecordedOptions<Said>
): Promise<Counted> =>
  withDirectory((directory) => {
    const to = join(directory, "recording.json")
    const recordPlan: RecordPlan = { to, hasProfile, ...database === undefined ? {} : { database } }
    const recorder = new URL(`./RecordOnSignal.js?${encodeURIComponent(JSON.stringify(recordPlan))}`, import.meta.url)
    return withServer<Said, Counted>(
      program,
      args,
      async (said) => {
        const { job, ...rest } = plan(said)
        const { count } = await load({ ...rest, job: { ...job, recorder: said.pid } })
        return { count, recording: await read(to) }
      },
      { nodeOptions: ["--import", recorder.href] }
    )
  })
