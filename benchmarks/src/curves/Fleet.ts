/**
 * The devices of a curve: processes of {@link TrafficPlan} that act as one.
 */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type Helper, withDirectory, withHelper } from "../Processes.ts"
import type { Posting, TrafficPlan } from "./Traffic.ts"

export interface Fleet {
  /** Replies until now. */
  readonly count: () => Promise<number>
  /** Begins to post. */
  readonly begin: (posting: string) => Promise<void>
  /** Posts no more, and waits for the replies that are missing. */
  readonly pause: () => Promise<void>
}

/** A process has 20,000 files on many systems. */
const connectionsOfProcess = 10_000

const shareOf = (posting: Posting, part: number): Posting =>
  "window" in posting ? posting : { perSecond: posting.perSecond * part }

/** Splits the devices evenly over as few processes as can hold them. */
const split = (plan: TrafficPlan): ReadonlyArray<TrafficPlan> => {
  const { devices, postings } = plan
  const parts = Math.ceil(devices.length / connectionsOfProcess)
  return Array.from({ length: parts }, (_, i) => ({
    ...plan,
    devices: devices.slice(i * devices.length / parts, (i + 1) * devices.length / parts),
    postings: Object.fromEntries(Object.entries(postings).map(([name, posting]) => [name, shareOf(posting, 1 / parts)]))
  }))
}

const withHelpers = async (
  plans: ReadonlyArray<TrafficPlan>,
  directory: string,
  helpers: ReadonlyArray<Helper>,
  use: (helpers: ReadonlyArray<Helper>) => Promise<void>
): Promise<void> => {
  const [plan, ...others] = plans
  if (plan === undefined) return use(helpers)
  const file = join(directory, `${others.length}.json`)
  await writeFile(file, JSON.stringify(plan))
  await withHelper("./curves/Traffic", { file }, async (helper) => {
    // One after the other: each opens as many connections at once as it may.
    await helper.ask("opened")
    await withHelpers(others, directory, [...helpers, helper], use)
  })
}

/** Opens the connections of a plan, and runs `use` while they are open. */
export const withFleet = (plan: TrafficPlan, use: (fleet: Fleet) => Promise<void>): Promise<void> =>
  withDirectory((directory) =>
    withHelpers(split(plan), directory, [], (helpers) => {
      const askAll = <A>(question: string) => Promise.all(helpers.map((helper) => helper.ask<A>(question)))
      return use({
        count: async () => (await askAll<number>("count")).reduce((sum, count) => sum + count, 0),
        begin: async (posting) => void await askAll(posting),
        pause: async () => void await askAll("pause")
      })
    })
  )
