/**
 * The bytes that wait in the sockets of devices that do not read: how many there
 * may be, and for how long.
 */
import type { Duplex } from "node:stream"

export interface UnsentLimits {
  /** Bytes in all sockets. Above it, the connection that has not been read for longest ends. */
  readonly bytes: number
  /** Milliseconds after which a connection ends whose device reads nothing. */
  readonly time: number
}

/** The output of one connection. Its members are for {@link UnsentOutput}. */
export class Output {
  readonly stream: Duplex
  /** Bytes that wait; 0: the socket takes more. */
  bytes = 0
  /** Since when the device has read nothing, Unix milliseconds. */
  since = 0

  constructor(stream: Duplex) {
    this.stream = stream
  }
}

export class UnsentOutput {
  readonly #limits: UnsentLimits
  readonly #now: () => number
  readonly #onEnded: () => void
  /** The outputs with bytes that wait; what has waited longest comes first. */
  readonly #waiting = new Set<Output>()
  #bytes = 0

  /** `now` returns Unix milliseconds. `onEnded` is called for each connection that ends. */
  constructor(limits: UnsentLimits, now: () => number, onEnded: () => void) {
    this.#limits = limits
    this.#now = now
    this.#onEnded = onEnded
  }

  /** Bytes that wait in all sockets that take no more. */
  get bytes(): number {
    return this.#bytes
  }

  /** The socket takes no more: what was written to it waits. */
  waits(output: Output): void {
    if (output.bytes === 0) {
      output.since = this.#now()
      this.#waiting.add(output)
    }
    this.#count(output)
    for (const longest of this.#waiting) {
      if (this.#bytes <= this.#limits.bytes) return
      this.#end(longest)
    }
  }

  /** The device has read everything, or the connection has ended. */
  drained(output: Output): void {
    if (output.bytes === 0) return
    this.#bytes -= output.bytes
    output.bytes = 0
    this.#waiting.delete(output)
  }

  /** Ends the connections whose devices have read nothing for too long. */
  endStale(): void {
    const tooLong = this.#now() - this.#limits.time
    for (const output of this.#waiting) {
      const { bytes } = output
      this.#count(output)
      if (output.bytes < bytes) output.since = this.#now()
      else if (output.since <= tooLong) this.#end(output)
    }
  }

  #count(output: Output): void {
    // At least one byte waits until the socket takes more.
    const bytes = Math.max(1, output.stream.writableLength)
    this.#bytes += bytes - output.bytes
    output.bytes = bytes
  }

  #end(output: Output): void {
    this.drained(output)
    output.stream.destroy()
    this.#onEnded()
  }
}
