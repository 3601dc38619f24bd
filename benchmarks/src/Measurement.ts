/**
 * The counts of a load while it measures.
 */
export interface Times {
  readonly warmupMillis: number
  readonly measureMillis: number
}

export interface LoadResult {
  /** Replies, answers or accepted connections in the measured time. */
  readonly count: number
  readonly seconds: number
  /** Milliseconds from post to reply, or from request to answer. */
  readonly p50: number
  readonly p99: number
}

export const fail = (reason: string): never => {
  process.stderr.write(`${reason}\n`)
  process.exit(1)
}

export const percentile = (sorted: Float64Array, part: number): number =>
  sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!

/** Waits for the warm-up, then counts for the measured time. */
export const measured = async (
  { measureMillis, warmupMillis }: Times,
  setMeasuring: (now: boolean) => void,
  result: () => { readonly count: number; readonly latencies: ReadonlyArray<number> }
): Promise<LoadResult> => {
  await new Promise((resolve) => setTimeout(resolve, warmupMillis))
  setMeasuring(true)
  const from = performance.now()
  await new Promise((resolve) => setTimeout(resolve, measureMillis))
  setMeasuring(false)
  const seconds = (performance.now() - from) / 1000
  const { count, latencies } = result()
  const sorted = Float64Array.from(latencies).sort()
  return { count, seconds, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
}
