/**
 * Turns of requests on the thread that they share with everything else. Node.js
 * hands out all requests that have arrived before it looks at any other socket:
 * a hundred expensive ones of one client kept the devices of everybody waiting
 * for 0.5 s (docs/decisions/0061-turns-of-requests.md). Here requests run for a few
 * milliseconds, then other sockets have their turn. Those that wait take turns
 * by address, and at one address by access key.
 *
 * A request for which there is time costs a look at the clock, 50 ns.
 */

/** How long requests run before other sockets have their turn, milliseconds. */
const turnMillis = 4

interface Waiting {
  start: () => void
}

export class RequestTurns {
  /** By address and access key; what comes first has the next turn. */
  readonly #waiting = new Map<string, Map<string, Array<Waiting>>>()
  /** The end of the turn that is under way. */
  #until: number | undefined
  readonly #now: () => number

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Whether a request may run at once. Otherwise it has to {@link wait}. */
  mayRun(): boolean {
    if (this.#until === undefined) {
      this.#until = this.#now() + turnMillis
      setImmediate(this.#nextTurn)
      return true
    }
    return this.#waiting.size === 0 && this.#now() < this.#until
  }

  /** Calls `start` when its turn comes. Returns a function that gives it up. */
  wait(address: string, accessKey: string, start: () => void): () => void {
    const waiting: Waiting = { start }
    let keys = this.#waiting.get(address)
    if (keys === undefined) this.#waiting.set(address, keys = new Map())
    const line = keys.get(accessKey)
    if (line === undefined) keys.set(accessKey, [waiting])
    else line.push(waiting)
    if (this.#until === undefined) {
      this.#until = this.#now() + turnMillis
      setImmediate(this.#nextTurn)
    }
    return () => {
      waiting.start = () => {}
    }
  }

  readonly #nextTurn = (): void => {
    if (this.#waiting.size === 0) {
      this.#until = undefined
      return
    }
    const until = this.#until = this.#now() + turnMillis
    do this.#take().start()
    while (this.#waiting.size > 0 && this.#now() < until)
    setImmediate(this.#nextTurn)
  }

  /** Takes the next one, and puts its address and its access key behind the others. */
  #take(): Waiting {
    const [address, keys] = this.#waiting.entries().next().value!
    const [accessKey, line] = keys.entries().next().value!
    this.#waiting.delete(address)
    keys.delete(accessKey)
    const waiting = line.shift()!
    if (line.length > 0) keys.set(accessKey, line)
    if (keys.size > 0) this.#waiting.set(address, keys)
    return waiting
  }
}
