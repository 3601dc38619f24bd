/**
 * Turns on the thread that everybody shares. Node.js hands out all that has
 * arrived on all sockets before it comes to anything else: a hundred expensive
 * requests of one client, or a flood of one project's devices, keep all others
 * waiting for 0.1 to 1 s (docs/decisions/0061-turns-on-the-thread.md). With turns, work
 * runs for a few milliseconds, then other sockets are looked at. What waits takes
 * turns by group, and in a group by key.
 *
 * Work for which there is time costs a look at the clock, 50 ns.
 */
import { Entry, FairQueue } from "./FairQueue.ts"

export interface TurnsOptions {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  /** Calls back once other sockets have been looked at: `setImmediate` of Node.js. */
  readonly afterOthers: (run: () => void) => void
  /** How often work runs at most before other sockets are looked at. Default: no limit. */
  readonly maxRuns?: number
}

/**
 * How long work runs before other sockets are looked at, milliseconds. Two of them make
 * a round, that of HTTP and that of MQTT.
 */
const turnMillis = 2

class Waiting extends Entry {
  readonly run: () => void

  constructor(run: () => void) {
    super(1)
    this.run = run
  }
}

export class Turns {
  readonly #options: TurnsOptions
  readonly #waiting = new FairQueue<Waiting>({
    capacity: Number.POSITIVE_INFINITY,
    maxWeight: Number.POSITIVE_INFINITY,
    turnWeight: 1
  })
  readonly #maxRuns: number
  /** The end of the turn that is under way. */
  #until: number | undefined
  /** What has run in it. */
  #runs = 0

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#maxRuns = options.maxRuns ?? Number.POSITIVE_INFINITY
  }

  /** Whether work waits for its turn. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** Whether work may run at once. Otherwise it has to {@link wait}. */
  mayRun(): boolean {
    if (this.#until === undefined) this.#begin()
    else if (this.isAwaited || !this.hasTime()) return false
    this.#runs++
    return true
  }

  /** Whether work that runs may go on. Otherwise it has to {@link wait} for its next turn. */
  hasTime(): boolean {
    return this.#until !== undefined && this.#runs < this.#maxRuns && this.#options.now() < this.#until
  }

  /** Calls `run` when its turn comes. */
  wait(group: string, key: string, run: () => void): void {
    this.#waiting.push(new Waiting(run), key, group)
    if (this.#until === undefined) this.#begin()
  }

  #begin(): void {
    this.#until = this.#options.now() + turnMillis
    this.#runs = 0
    this.#options.afterOthers(this.#next)
  }

  readonly #next = (): void => {
    if (this.#waiting.size === 0) {
      this.#until = undefined
      return
    }
    this.#begin()
    do {
      this.#runs++
      for (const { run } of this.#waiting.take(1, Number.POSITIVE_INFINITY)) run()
    } while (this.#waiting.size > 0 && this.hasTime())
  }
}
