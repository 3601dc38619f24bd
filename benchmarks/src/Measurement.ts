/**
 * The counts of a load while it measures.
 */
import { setTimeout } from "node:timers/promises"

export interface Times {
  readonly warmupMillis: number
  /** Whether the warm-up goes on until the rate does not grow any more. */
  readonly untilSteady?: boolean
  readonly measureMillis: number
  /** The process that gets SIGUSR2 when the measured time begins and when it ends. */
  readonly recorder?: number
}

export interface LoadResult {
  /** Replies, answers or accepted connections in the measured time. */
  readonly count: number
  readonly seconds: number
  /** Milliseconds from post to reply, or from request to answer. */
  readonly p50: number
  readonly p99: number
  readonly p999?: number
  readonly longest?: number
}

/** Latencies in steps of ten microseconds up to ten seconds: bounded, however long a load lasts. */
export class Latencies {
  count = 0
  /** Milliseconds. */
  longest = 0
  private readonly steps = new Uint32Array(1_000_000)

  record(millis: number): void {
    this.count++
    if (millis > this.longest) this.longest = millis
    this.steps[Math.min(this.steps.length - 1, Math.floor(millis * 100))]!++
  }

  clear(): void {
    this.count = 0
    this.longest = 0
    this.steps.fill(0)
  }

  /** Milliseconds, at most ten microseconds too few. 0 if there are none. */
  percentile(part: number): number {
    const rank = Math.floor(this.count * part)
    let seen = 0
    for (let step = 0; step < this.steps.length; step++) {
      seen += this.steps[step]!
      if (seen > rank) return step / 100
    }
    return this.longest
  }
}

export const fail = (reason: string): never => {
  process.stderr.write(`${reason}\n`)
  process.exit(1)
}

export const percentile = (sorted: Float64Array, part: number): number =>
  sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!

/** A rate is steady when a second brings less than so many times the best one before it. */
const growth = 1.05
/** However long it grows. */
const maxWarmupSeconds = 8

/** What V8 has not compiled yet is slow: a server of many functions gets faster for six seconds, a small one for two. */
const steady = async (count: () => number): Promise<void> => {
  let best = 0
  for (let second = 0; second < maxWarmupSeconds; second++) {
    const before = count()
    await setTimeout(1000)
    const counted = count() - before
    if (counted < best * growth) return
    best = counted
  }
}

/** Waits for the warm-up, then counts for the measured time: the latencies, if nothing else is counted. */
export const measured = async (
  { measureMillis, recorder, untilSteady = false, warmupMillis }: Times,
  latencies: Latencies,
  count: () => number = () => latencies.count
): Promise<LoadResult> => {
  await setTimeout(warmupMillis)
  if (untilSteady) await steady(count)
  if (recorder !== undefined) process.kill(recorder, "SIGUSR2")
  latencies.clear()
  const before = count()
  const from = performance.now()
  await setTimeout(measureMillis)
  if (recorder !== undefined) process.kill(recorder, "SIGUSR2")
  const seconds = (performance.now() - from) / 1000
  return {
    count: count() - before,
    seconds,
    p50: latencies.percentile(0.5),
    p99: latencies.percentile(0.99),
    p999: latencies.percentile(0.999),
    longest: latencies.longest
  }
}
