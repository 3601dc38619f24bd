/**
 * The open connections of the broker, and what is known of each before and after
 * its device has proved who it is.
 */
import { ChurnMap } from "@device-cloud/core"
import type { Client } from "aedes"
import type { Duplex } from "node:stream"
import type { Arrival } from "./Arrivals.ts"
import type { MqttConnection } from "./MqttConnection.ts"
import type { Peer } from "./Peer.ts"

/** One connection, from its first byte to its end. */
export class ConnectionState {
  /** Counts connections from 1. */
  readonly number: number
  readonly stream: Duplex
  readonly peer: Peer
  /** How the connection counts before its device is authenticated. */
  readonly arrival: Arrival
  /** The client id as the device sent it. */
  clientId = ""
  /** The device's connection; undefined before the device is authenticated and after it is detached. */
  connection: MqttConnection | undefined
  /** What to send after the CONNACK to a device that registers. */
  registered: Buffer | undefined
  /** Messages that wait for room in the queue of the cloud. */
  waiting = 0
  /** What ends the wait of messages until it is known whether the device has moved; undefined: none wait. */
  doubtful: Array<(hasMoved: boolean) => void> | undefined
  /** The socket takes more, or the connection has ended. */
  drained: () => void = () => {}
  /** Reads on if there is something to read and it may be read. */
  read: () => void = () => {}
  /** Packets that were read and are not handled to their end. */
  underway: () => number = () => 0
  /** Whether the broker ends the connection: nothing more is read. */
  isEnding = false

  constructor(number: number, stream: Duplex, peer: Peer, arrival: Arrival) {
    this.number = number
    this.stream = stream
    this.peer = peer
    this.arrival = arrival
  }
}

/** All open connections of a broker. */
export class Connections {
  /** Whether the broker is shutting down: nothing more is read, nobody is let in. */
  isStopping = false
  readonly #byClient = new WeakMap<Client, ConnectionState>()
  readonly #open = new ChurnMap<number, ConnectionState>()
  #lastNumber = 0

  /** Adds a connection that has been accepted. */
  add(client: Client, stream: Duplex, peer: Peer, arrival: Arrival): ConnectionState {
    const state = new ConnectionState(++this.#lastNumber, stream, peer, arrival)
    this.#byClient.set(client, state)
    this.#open.set(state.number, state)
    return state
  }

  /** Removes a connection that has ended. */
  remove(client: Client): void {
    const state = this.#byClient.get(client)
    if (state === undefined) return
    this.#byClient.delete(client)
    this.#open.delete(state.number)
  }

  /** Returns the open connection of the client. */
  of(client: Client): ConnectionState | undefined {
    return this.#byClient.get(client)
  }

  /** Returns all open connections in no order. */
  all(): ReadonlyArray<ConnectionState> {
    return this.#open.values()
  }
}
