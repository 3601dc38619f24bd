/**
 * The counts of a load while it measures.
 */
export interface Times {
  readonly warmupMillis: number
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

/** Waits for the warm-up, then counts for the measured time: the latencies, if nothing else is counted. */
export const measured = async (
  { measureMillis, recorder, warmupMillis }: Times,
  setMeasuring: (now: boolean) => void,
  latencies: Latencies,
  count: () => number = () => latencies.count
): Promise<LoadResult> => {
  await new Promise((resolve) => setTimeout(resolve, warmupMillis))
  if (recorder !== undefined) process.kill(recorder, "SIGUSR2")
  setMeasuring(true)
  const from = performance.now()
  await new Promise((resolve) => setTimeout(resolve, measureMillis))
  setMeasuring(false)
  if (recorder !== undefined) process.kill(recorder, "SIGUSR2")
  const seconds = (performance.now() - from) / 1000
  return {
    count: count(),
    seconds,
    p50: latencies.percentile(0.5),
    p99: latencies.percentile(0.99),
    p999: latencies.percentile(0.999),
    longest: latencies.longest
  }
}
