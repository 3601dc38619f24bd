/**
 * The times that one kind of operation takes. What has begun and not ended
 * counts with its age, so that a cloud that stands still shows.
 */
import { percentile } from "../Measurement.ts"

export interface Summary {
  readonly count: number
  /** Operations that were refused or broken off, by reason. */
  readonly failed: Readonly<Record<string, number>>
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export class Series {
  private readonly begun = new Map<number, number>()
  private times: Array<number> = []
  private failed: Record<string, number> = {}
  private next = 0

  begin(): number {
    this.begun.set(++this.next, performance.now())
    return this.next
  }

  end(operation: number): void {
    const at = this.begun.get(operation)
    if (at === undefined) return
    this.begun.delete(operation)
    this.times.push(performance.now() - at)
  }

  fail(operation: number, reason: string): void {
    if (!this.begun.has(operation)) return
    this.end(operation)
    this.failed[reason] = (this.failed[reason] ?? 0) + 1
  }

  /** Fails everything that has not ended. */
  failAll(reason: string): void {
    for (const operation of this.begun.keys()) this.fail(operation, reason)
  }

  /** Summarizes what happened since the last call. */
  take(): Summary {
    const now = performance.now()
    const sorted = Float64Array.from([...this.times, ...Array.from(this.begun.values(), (at) => now - at)]).sort()
    const summary = {
      count: sorted.length,
      failed: this.failed,
      p50: percentile(sorted, 0.5),
      p99: percentile(sorted, 0.99),
      max: sorted.at(-1) ?? 0
    }
    this.times = []
    this.failed = {}
    return summary
  }
}
