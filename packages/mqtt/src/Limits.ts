/**
 * What the broker holds of all its clients together, and of each, at most.
 */
import type { Duration } from "effect"

export interface Limits {
  /**
   * Connections at once, authenticated or not, over TLS, TCP and WebSocket. Keep it
   * below the number of files that the process may have open. Default: 100,000.
   */
  readonly connections: number
  /**
   * Those of `connections` that only addresses get from which a device was
   * authenticated within half a day. Default: a tenth of `connections`.
   */
  readonly reservedConnections: number
  /**
   * Unauthenticated connections at once of addresses from which no device was
   * authenticated lately. Above it, the one that has waited longest for its client
   * ends. Default: 5,000.
   */
  readonly unauthenticated: number
  /**
   * Unauthenticated connections at once of one address. From an address from which
   * a device was authenticated lately, there may be `unauthenticated`. Default: 2,500.
   */
  readonly unauthenticatedOfAddress: number
  /** Bytes that all unauthenticated connections together hold. Default: 16 MiB. */
  readonly unauthenticatedBytes: number
  /** How long a TLS handshake may take, and after it the CONNECT. Default: 10 seconds. */
  readonly connectTime: Duration.Input
  /**
   * Bytes that may wait in the socket of one device. At half of it, replies and
   * commands wait until the device reads; a message that cannot wait ends the
   * connection above it. Default: 256 KiB.
   */
  readonly unsentBytesOfConnection: number
  /** Bytes that wait in all sockets. Above it, the connection that was not read for longest ends. Default: 64 MiB. */
  readonly unsentBytes: number
  /** How long a device may leave unread what waits for it. Default: 1 minute. */
  readonly unsentTime: Duration.Input
  /** How long a session with subscriptions is kept after its connection has ended. Default: 1 day. */
  readonly sessionExpiry: Duration.Input
  /** Bytes of the sessions that are kept. Above it, sessions of the project that has most end. Default: 64 MiB. */
  readonly sessionBytes: number
}

const mebibyte = 1024 * 1024

const defaultConnections = 100_000

/** Returns all limits, with defaults for those that are not given. Throws a `TypeError` that names one that limits nothing. */
export const complete = (given: Partial<Limits> = {}): Limits => {
  const { connections = defaultConnections } = given
  const defaults: Limits = {
    connections: defaultConnections,
    reservedConnections: Math.floor(connections / 10),
    unauthenticated: 5000,
    unauthenticatedOfAddress: 2500,
    unauthenticatedBytes: 16 * mebibyte,
    connectTime: "10 seconds",
    unsentBytesOfConnection: 256 * 1024,
    unsentBytes: 64 * mebibyte,
    unsentTime: "1 minute",
    sessionExpiry: "1 day",
    sessionBytes: 64 * mebibyte
  }
  // An optional member that is undefined is one that is not given.
  const stated = Object.entries(given).filter(([, limit]) => limit !== undefined)
  for (const [name, limit] of stated) {
    // Nothing is above one that is no number.
    if (typeof defaults[name as keyof Limits] === "number" && !(typeof limit === "number" && limit >= 0)) {
      throw new TypeError(`limits.${name}: expected a number from 0 on, not ${String(limit)}`)
    }
  }
  return { ...defaults, ...Object.fromEntries(stated) }
}
