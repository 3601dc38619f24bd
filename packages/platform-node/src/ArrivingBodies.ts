/**
 * The bodies of requests while they arrive: how many bytes all of them may have,
 * and how long one may take.
 */
import { ChurnMap } from "@device-cloud/core"
import { Data } from "effect"

/** Why a body is not read to its end. `crowded`: too many arrive at once. `slow`: it took too long. */
export type Refusal = "crowded" | "slow"

/** The cause of the failure to read a body. */
export class BodyRefused extends Data.TaggedError("BodyRefused")<{ readonly reason: Refusal }> {}

/** One body. Its members are for {@link ArrivingBodies}. */
export class ArrivingBody {
  readonly number: number
  readonly address: string
  /** Unix milliseconds. */
  readonly since: number
  readonly refuse: (reason: BodyRefused) => void
  bytes = 0

  constructor(number: number, address: string, since: number, refuse: (reason: BodyRefused) => void) {
    this.number = number
    this.address = address
    this.since = since
    this.refuse = refuse
  }
}

export class ArrivingBodies {
  readonly #maxBytes: number
  readonly #maxMillis: number
  readonly #now: () => number
  readonly #arriving = new ChurnMap<number, ArrivingBody>()
  #last = 0
  #bytes = 0

  /** `now` returns Unix milliseconds. */
  constructor(maxBytes: number, maxMillis: number, now: () => number) {
    this.#maxBytes = maxBytes
    this.#maxMillis = maxMillis
    this.#now = now
  }

  /** Bytes that have arrived of bodies that are not complete. */
  get bytes(): number {
    return this.#bytes
  }

  /** A body of a client at this address begins. `refuse` is called at most once, before `end`. */
  begin(address: string, refuse: (reason: BodyRefused) => void): ArrivingBody {
    const body = new ArrivingBody(++this.#last, address, this.#now(), refuse)
    this.#arriving.set(body.number, body)
    return body
  }

  /**
   * More of the body has arrived. When all bodies together have too many bytes,
   * the oldest body of the address that sends most is refused.
   */
  grows(body: ArrivingBody, bytes: number): void {
    body.bytes += bytes
    this.#bytes += bytes
    while (this.#bytes > this.#maxBytes) this.#refuse(this.#oldestOfLargest(), "crowded")
  }

  /** The body is complete, or nobody waits for it any more. */
  end(body: ArrivingBody): void {
    if (this.#arriving.get(body.number) === undefined) return
    this.#arriving.delete(body.number)
    this.#bytes -= body.bytes
  }

  /** Refuses the bodies that take too long. */
  refuseSlow(): void {
    const tooLong = this.#now() - this.#maxMillis
    for (const body of this.#arriving.values()) {
      if (body.since <= tooLong) this.#refuse(body, "slow")
    }
  }

  #refuse(body: ArrivingBody, reason: Refusal): void {
    this.end(body)
    body.refuse(new BodyRefused({ reason }))
  }

  #oldestOfLargest(): ArrivingBody {
    const bodies = this.#arriving.values().filter(({ bytes }) => bytes > 0)
    const ofAddress = new Map<string, number>()
    for (const { address, bytes } of bodies) ofAddress.set(address, (ofAddress.get(address) ?? 0) + bytes)
    const [[largest] = [""]] = [...ofAddress].sort(([, a], [, b]) => b - a)
    return bodies.filter(({ address }) => address === largest).reduce((a, b) => a.number < b.number ? a : b)
  }
}
