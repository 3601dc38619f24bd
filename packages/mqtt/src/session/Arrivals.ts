/**
 * Connections from their first byte until their device is authenticated: how many
 * there may be, and how much they may hold.
 *
 * When there is no room, the connection that has waited longest for its client
 * makes room, so that idle connections keep nobody out. A part of all connections
 * is for addresses from which a device was authenticated lately
 * (docs/decisions/0049-connections-before-authentication.md).
 */
import { ChurnMap, type KnownAddresses } from "@device-cloud/core"

/** How many connections there may be, and how much they may hold. */
export interface ArrivalLimits {
  /** Connections at once, authenticated or not. */
  readonly connections: number
  /** Connections of `connections` that are for addresses that are known. */
  readonly reservedConnections: number
  /** Unauthenticated connections of addresses that are not known. */
  readonly unauthenticated: number
  /** Unauthenticated connections of one address; of one that is known, `unauthenticated`. */
  readonly unauthenticatedOfAddress: number
  /** Bytes that all unauthenticated connections hold. */
  readonly unauthenticatedBytes: number
}

/** Bytes that one unauthenticated connection may send before its CONNECT has been read. */
export const maxArrivalBytes = 16 * 1024

/** Milliseconds in which a connection whose client has sent something makes no room for others. */
const patience = 2000

/** The socket beneath a connection. */
export interface ArrivalSocket {
  readonly bytesRead?: number
  readonly destroy: () => unknown
}

/** Why a connection was closed, or not let in. `no proxy`: it does not come through a proxy, as it has to. */
export type TurnedAway = "no room" | "made room" | "too many bytes" | "no proxy"

/** One connection. Its members are for {@link Arrivals}. */
export class Arrival {
  readonly address: string
  readonly isKnown: boolean
  readonly since: number
  readonly socket: ArrivalSocket
  /** `waiting`: for the client; `judged`: for the cloud. */
  state: "waiting" | "judged" | "authenticated" | "gone" = "waiting"
  bytes = 0
  before: Arrival | undefined
  after: Arrival | undefined

  constructor(address: string, isKnown: boolean, since: number, socket: ArrivalSocket) {
    this.address = address
    this.isKnown = isKnown
    this.since = since
    this.socket = socket
  }
}

/** Connections that wait for their clients, the one that has waited longest first. */
class WaitingLine {
  #first: Arrival | undefined
  #last: Arrival | undefined

  add(arrival: Arrival): void {
    arrival.before = this.#last
    if (this.#last === undefined) this.#first = arrival
    else this.#last.after = arrival
    this.#last = arrival
  }

  remove(arrival: Arrival): void {
    const { after, before } = arrival
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    arrival.before = arrival.after = undefined
  }

  find(fits: (arrival: Arrival) => boolean): Arrival | undefined {
    let arrival = this.#first
    while (arrival !== undefined && !fits(arrival)) arrival = arrival.after
    return arrival
  }
}

export class Arrivals {
  readonly #limits: ArrivalLimits
  readonly #now: () => number
  readonly #onTurnedAway: (reason: TurnedAway) => void
  readonly #known: KnownAddresses["Service"]
  readonly #strangers = new WaitingLine()
  readonly #acquaintances = new WaitingLine()
  /** Unauthenticated connections by address. */
  readonly #ofAddress = new ChurnMap<string, { count: number }>()
  #open = 0
  #unauthenticated = 0
  #unauthenticatedStrangers = 0
  #bytes = 0

  /** `now` returns Unix milliseconds. */
  constructor(
    limits: ArrivalLimits,
    now: () => number,
    known: KnownAddresses["Service"],
    onTurnedAway: (reason: TurnedAway) => void
  ) {
    this.#limits = limits
    this.#now = now
    this.#onTurnedAway = onTurnedAway
    this.#known = known
  }

  /** Connections that are open. */
  get open(): number {
    return this.#open
  }

  /** Connections that are open and not authenticated. */
  get unauthenticated(): number {
    return this.#unauthenticated
  }

  /** Whether half of the room for connections that are not authenticated is taken. */
  get isCrowded(): boolean {
    return this.#unauthenticated > this.#limits.unauthenticated / 2
  }

  /** Bytes that unauthenticated connections hold. */
  get bytes(): number {
    return this.#bytes
  }

  /** Lets a connection in. Returns undefined if there is no room for it. */
  admit(address: string, socket: ArrivalSocket): Arrival | undefined {
    const isKnown = this.#known.has(address)
    if (!this.#makeRoom(address, isKnown)) {
      this.#onTurnedAway("no room")
      return undefined
    }
    const arrival = new Arrival(address, isKnown, this.#now(), socket)
    this.#open++
    this.#unauthenticated++
    if (!isKnown) this.#unauthenticatedStrangers++
    const ofAddress = this.#ofAddress.get(address)
    if (ofAddress === undefined) this.#ofAddress.set(address, { count: 1 })
    else ofAddress.count++
    this.#lineOf(arrival).add(arrival)
    return arrival
  }

  /** The connection holds so many bytes. Connections that hold some end when all together hold too many. */
  holds(arrival: Arrival, bytes: number): void {
    if (arrival.state === "authenticated" || arrival.state === "gone" || bytes <= arrival.bytes) return
    this.#bytes += bytes - arrival.bytes
    arrival.bytes = bytes
    const isHolding = (each: Arrival) => each.bytes > 0
    while (this.#bytes > this.#limits.unauthenticatedBytes) {
      const longest = this.#strangers.find(isHolding) ?? this.#acquaintances.find(isHolding)
      this.#turnAway(longest ?? arrival, "too many bytes")
      // The rest belongs to connections that the cloud judges.
      if (longest === undefined) return
    }
  }

  /** The CONNECT has been read; the cloud finds out who the device is. */
  judged(arrival: Arrival): void {
    if (arrival.state !== "waiting") return
    this.#lineOf(arrival).remove(arrival)
    arrival.state = "judged"
  }

  /** The device is authenticated. */
  authenticated(arrival: Arrival): void {
    if (arrival.state === "authenticated" || arrival.state === "gone") return
    this.#forget(arrival)
    arrival.state = "authenticated"
    this.#known.add(arrival.address)
  }

  /** The connection has ended. */
  left(arrival: Arrival): void {
    if (arrival.state === "gone") return
    if (arrival.state === "authenticated") this.#known.add(arrival.address)
    else this.#forget(arrival)
    arrival.state = "gone"
    this.#open--
  }

  #makeRoom(address: string, isKnown: boolean): boolean {
    const { connections, reservedConnections, unauthenticated, unauthenticatedOfAddress } = this.#limits
    const isOfAddress = (each: Arrival) => each.address === address && this.#mayGo(each)
    const mayGo = (each: Arrival) => this.#mayGo(each)
    // All devices behind one address may come back at once.
    const share = isKnown ? unauthenticated : unauthenticatedOfAddress
    if ((this.#ofAddress.get(address)?.count ?? 0) >= share) {
      if (!this.#end(this.#strangers.find(isOfAddress) ?? this.#acquaintances.find(isOfAddress))) return false
    }
    if (!isKnown && this.#unauthenticatedStrangers >= unauthenticated && !this.#end(this.#strangers.find(mayGo))) {
      return false
    }
    if (this.#open < (isKnown ? connections : connections - reservedConnections)) return true
    return this.#end(this.#strangers.find(mayGo) ?? (isKnown ? this.#acquaintances.find(mayGo) : undefined))
  }

  /** A client that has begun to speak has time to go on: work that was done for it is not thrown away. */
  #mayGo({ since, socket }: Arrival): boolean {
    return (socket.bytesRead ?? 0) === 0 || since + patience <= this.#now()
  }

  #end(arrival: Arrival | undefined): boolean {
    if (arrival === undefined) return false
    this.#turnAway(arrival, "made room")
    return true
  }

  #turnAway(arrival: Arrival, reason: TurnedAway): void {
    this.left(arrival)
    arrival.socket.destroy()
    this.#onTurnedAway(reason)
  }

  #lineOf({ isKnown }: Arrival): WaitingLine {
    return isKnown ? this.#acquaintances : this.#strangers
  }

  /** Counts the connection no longer among those that are not authenticated. */
  #forget(arrival: Arrival): void {
    if (arrival.state === "waiting") this.#lineOf(arrival).remove(arrival)
    this.#unauthenticated--
    if (!arrival.isKnown) this.#unauthenticatedStrangers--
    this.#bytes -= arrival.bytes
    arrival.bytes = 0
    const ofAddress = this.#ofAddress.get(arrival.address)!
    if (--ofAddress.count === 0) this.#ofAddress.delete(arrival.address)
  }
}
