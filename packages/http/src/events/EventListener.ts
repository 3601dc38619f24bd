/**
 * One stream of events on its way to a client: what waits for the client to read
 * it, within bounds. A client that is further behind gets its events from the feed.
 */
import { type FeedPage, type FeedPlace, feedStart } from "@device-cloud/core"
import { Cause, Effect } from "effect"
import type { EventChunk } from "./EventChunk.ts"
import { encode, gap, heartbeat, heartbeatAt } from "./ServerSentEvent.ts"

/** Bytes that wait for all clients of this server together, before each may have but little. */
export interface WaitingBytes {
  total: number
}

/** Bytes that wait for all clients, from which on each may have {@link little}. */
const totalBytes = 64 * 1024 * 1024
/** Bytes that may wait for one client. */
const much = 4 * 1024 * 1024
const little = 64 * 1024
/** Bytes that are written at once, unless what has come together is more. */
const chunkBytes = 64 * 1024

/** What a listener gets its events from. */
export interface EventSource {
  /** Reads events for the listener from the feed. */
  readonly read: (after: FeedPlace) => Effect.Effect<FeedPage>
  /** The place after which the listener is offered all of its events. */
  readonly offeredFrom: () => FeedPlace
}

export class EventListener {
  readonly #sum: WaitingBytes
  readonly #source: EventSource
  /** Everything up to here is on its way to the client. */
  #place: FeedPlace
  /** Whether what comes after the place has to be read: offers are then left out. */
  #isBehind: boolean
  #waiting: Array<Uint8Array> = []
  #bytes = 0
  #wake: (() => void) | undefined
  #hasEnded = false

  /** Begins with the bytes of `beginning`, then the events after `after`. */
  constructor(
    sum: WaitingBytes,
    source: EventSource,
    { after, beginning }: { readonly after: FeedPlace; readonly beginning: ReadonlyArray<Uint8Array> }
  ) {
    this.#sum = sum
    this.#source = source
    this.#place = after
    // A place that is further may be of another feed: a read of it says so.
    this.#isBehind = after !== source.offeredFrom()
    for (const bytes of beginning) this.#push(bytes)
  }

  /**
   * Tells a client that has read all that the stream lives, and how far it is: a client
   * that comes back after a long silence need not go on at its last event. `hasAll`:
   * the listener has been offered all of its events.
   */
  beat(hasAll: boolean): void {
    if (this.#wake === undefined || this.#waiting.length > 0) return
    const place = this.#source.offeredFrom()
    const isFurther = hasAll && place > this.#place
    this.#push(isFurther ? heartbeatAt(place) : heartbeat)
    if (isFurther) this.#place = place
    this.flush()
  }

  /** Keeps the bytes of events for the client, unless too much waits for it. */
  offer(chunk: EventChunk): void {
    if (this.#hasEnded || this.#isBehind || chunk.last <= this.#place) return
    const bytes = chunk.after(this.#place)
    const limit = this.#sum.total < totalBytes ? much : little
    if (this.#bytes + bytes.length > limit && this.#bytes > 0) {
      this.#isBehind = true
      return
    }
    this.#push(bytes)
    this.#place = chunk.last
  }

  /** Tells the client that events are missing. What is offered from now on counts, wherever it is in the feed. */
  missed(): void {
    this.#push(gap)
    this.#place = feedStart
    this.#isBehind = false
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
    this.#resume()
    return isReading
  }

  /** Returns the next bytes when there are some; is done when the stream has ended. */
  readonly next: Effect.Effect<Uint8Array, Cause.Done> = Effect.suspend(() => {
    const chunk = this.#take()
    if (chunk !== undefined) return Effect.succeed(chunk)
    if (this.#hasEnded) return Cause.done()
    return Effect.flatMap(this.#isBehind ? this.#catchUp : this.#news, () => this.next)
  })

  readonly #news: Effect.Effect<void> = Effect.callback((resume) => {
    this.#wake = () => {
      this.#wake = undefined
      resume(Effect.void)
    }
    return Effect.sync(() => {
      this.#wake = undefined
    })
  })

  /** Reads what comes next; from the end of the feed on, events are offered. */
  readonly #catchUp: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(this.#source.read(this.#place), ({ entries, hasMore, isGap, next }) => {
      if (this.#hasEnded) return
      if (isGap) this.#push(gap)
      if (entries.length > 0) this.#push(encode(entries))
      this.#place = next
      this.#isBehind = hasMore || next < this.#source.offeredFrom()
    })
  )

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
    let count = 0
    let length = 0
    while (length < chunkBytes && count < this.#waiting.length) length += this.#waiting[count++]!.length
    const chunk = this.#waiting.splice(0, count)
    this.#bytes -= length
    this.#sum.total -= length
    return chunk.length <= 1 ? chunk[0] : joined(chunk, length)
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
