/**
 * One stream of events on its way to a client: what waits for the client to read
 * it, within bounds.
 */
import type { PublishedEvent } from "@device-cloud/core"
import { Cause, Effect } from "effect"
import { encode, gap } from "./ServerSentEvent.ts"

/** Bytes that wait for all clients of this server together, before each may have but little. */
export interface WaitingBytes {
  total: number
}

/** Bytes that wait for all clients, from which on each may have {@link little}. */
const totalBytes = 64 * 1024 * 1024
/** Bytes that may wait for one client. */
const much = 4 * 1024 * 1024
const little = 64 * 1024
/** Bytes that are written at once, unless one event has more. */
const chunkBytes = 64 * 1024

export class EventListener {
  readonly #sum: WaitingBytes
  #beginning: Array<Uint8Array>
  /** What the client has missed, the latest first. */
  readonly #missed: Array<PublishedEvent>
  #waiting: Array<Uint8Array> = []
  #bytes = 0
  #wake: (() => void) | undefined
  #hasEnded = false

  /** Begins with the bytes of `beginning`, then what was missed. */
  constructor(sum: WaitingBytes, missed: ReadonlyArray<PublishedEvent>, beginning: ReadonlyArray<Uint8Array>) {
    this.#sum = sum
    this.#beginning = [...beginning]
    this.#missed = missed.toReversed()
  }

  /** Whether the client has read all. */
  get isIdle(): boolean {
    return this.#wake !== undefined && this.#waiting.length === 0
  }

  /** Keeps bytes for the client. One that is too far behind loses what waits for it, and is told so. */
  offer(bytes: Uint8Array): void {
    if (this.#hasEnded) return
    const limit = this.#sum.total < totalBytes ? much : little
    if (this.#bytes + bytes.length > limit && this.#bytes > 0) {
      this.#drop()
      this.#push(gap)
    }
    this.#push(bytes)
  }

  /** Lets the client have what waits. */
  flush(): void {
    if (this.#waiting.length > 0 || this.#hasEnded) this.#resume()
  }

  /** Ends the stream. Returns whether the client was reading: it is then told. */
  end(): boolean {
    const isReading = this.#wake !== undefined
    this.#hasEnded = true
    this.#drop()
    this.#missed.length = 0
    this.#resume()
    return isReading
  }

  /** Returns the next bytes when there are some; is done when the stream has ended. */
  readonly next: Effect.Effect<Uint8Array, Cause.Done> = Effect.callback((resume) => {
    const chunk = this.#take()
    if (chunk !== undefined) return resume(Effect.succeed(chunk))
    if (this.#hasEnded) return resume(Cause.done())
    this.#wake = () => {
      this.#wake = undefined
      resume(this.next)
    }
    return Effect.sync(() => {
      this.#wake = undefined
    })
  })

  #resume(): void {
    this.#wake?.()
  }

  #push(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    this.#sum.total += bytes.length
  }

  #drop(): void {
    this.#sum.total -= this.#bytes
    this.#bytes = 0
    this.#waiting = []
  }

  #take(): Uint8Array | undefined {
    const chunk = this.#beginning
    this.#beginning = []
    let length = chunk.reduce((sum, bytes) => sum + bytes.length, 0)
    while (length < chunkBytes && this.#missed.length > 0) {
      const bytes = encode(this.#missed.pop()!)
      chunk.push(bytes)
      length += bytes.length
    }
    let count = 0
    let taken = 0
    while (length + taken < chunkBytes && count < this.#waiting.length) taken += this.#waiting[count++]!.length
    if (count > 0) {
      chunk.push(...this.#waiting.splice(0, count))
      this.#bytes -= taken
      this.#sum.total -= taken
    }
    return chunk.length <= 1 ? chunk[0] : joined(chunk, length + taken)
  }
}

const joined = (chunks: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
