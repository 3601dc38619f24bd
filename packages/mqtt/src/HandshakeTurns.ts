/**
 * TLS handshakes in turns (docs/decisions/0092-handshakes-in-turns.md). A handshake
 * is a millisecond of work that nothing interrupts: thousands that come at once
 * would stop everything else for seconds. It waits for its turn when the client has
 * said hello. Whom the cloud knows comes first, and strangers wait while others come
 * (docs/decisions/0134-strangers-wait-while-others-come.md). Of each kind, who came
 * last comes first: who came earlier is closer to giving up. Who has given up costs
 * nothing.
 */
import { Newcomers } from "@device-cloud/core"
import type { Socket } from "node:net"
import { maxArrivalBytes } from "./session/Arrivals.ts"

/** Milliseconds in which handshakes begin before everything else has its turn. */
const turnMillis = 10

/** Milliseconds that strangers wait for others to come, at most, before they have another turn. */
const patience = 10 * turnMillis

/** The type of the TLS record with which a client says hello, and the bytes before the content of a record. */
const handshakeRecord = 22
const recordHeadBytes = 5

/** What is known of a client before its handshake. */
export interface Greeter {
  /** Whether it comes before those that are not known. */
  readonly isKnown: boolean
  /** Hears how many bytes are held for the client. */
  readonly holds: (bytes: number) => void
}

/** A client that says hello, or waits for its turn. */
class Greeting {
  readonly socket: Socket
  /** Calls this when the hello is complete. */
  readonly #complete: () => void
  readonly #holds: (bytes: number) => void
  #hello: Buffer = Buffer.alloc(0)
  #isComplete = false

  constructor(socket: Socket, holds: (bytes: number) => void, complete: () => void) {
    this.socket = socket
    this.#holds = holds
    this.#complete = complete
  }

  /** Reads the hello. */
  begin(): void {
    const { socket } = this
    socket.on("readable", this.#read)
    socket.on("error", this.#end)
    socket.on("timeout", this.#end)
  }

  /** Leaves the socket as it was, with the hello to read. */
  leave(): void {
    const { socket } = this
    socket.setTimeout(0)
    socket.off("readable", this.#read)
    socket.off("error", this.#end)
    socket.off("timeout", this.#end)
    socket.unshift(this.#hello)
  }

  // Also after the hello: only who reads learns that the client has gone.
  readonly #read = (): void => {
    for (let chunk: Buffer | null; (chunk = this.socket.read()) !== null;) {
      this.#hello = this.#hello.length === 0 ? chunk : Buffer.concat([this.#hello, chunk])
    }
    this.#holds(this.#hello.length)
    if (this.#hello.length > maxArrivalBytes) return this.#end()
    if (this.#isComplete || !isWhole(this.#hello)) return
    this.#isComplete = true
    this.#complete()
  }

  readonly #end = (): void => void this.socket.destroy()
}

/** Whether a TLS record is complete. What is no hello need not be: to refuse it is no work. */
const isWhole = (bytes: Buffer): boolean =>
  bytes.length > 0 &&
  (bytes[0] !== handshakeRecord ||
    (bytes.length >= recordHeadBytes && bytes.length >= recordHeadBytes + bytes.readUInt16BE(3)))

/** Clients that wait, the latest last. Those that have gone stay in place until there are many. */
class Line {
  #greetings: Array<Greeting> = []
  #gone = 0

  add(greeting: Greeting): void {
    this.#greetings.push(greeting)
    greeting.socket.once("close", this.#forget)
  }

  /** Removes and returns the latest that is there. */
  take(): Greeting | undefined {
    for (;;) {
      const greeting = this.#greetings.pop()
      greeting?.socket.off("close", this.#forget)
      if (greeting?.socket.destroyed !== true) return greeting
    }
  }

  readonly #forget = (): void => {
    if (++this.#gone < 64 || this.#gone * 2 < this.#greetings.length) return
    this.#greetings = this.#greetings.filter(({ socket }) => !socket.destroyed)
    this.#gone = 0
  }
}

/** Handshakes of one kind of clients, in turns. */
class Lane {
  readonly #take: () => Greeting | undefined
  readonly #begin: (socket: Socket) => void
  readonly #afterOthers: (run: () => void) => void
  #isRunning = false
  /** The end of this turn, as `performance.now` counts. */
  #turnEnds = 0

  constructor(
    take: () => Greeting | undefined,
    begin: (socket: Socket) => void,
    afterOthers: (run: () => void) => void
  ) {
    this.#take = take
    this.#begin = begin
    this.#afterOthers = afterOthers
  }

  /** There is somebody to take. */
  run(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#afterOthers(this.#beginTurn)
  }

  readonly #beginTurn = (): void => {
    this.#turnEnds = performance.now() + turnMillis
    this.#next()
  }

  readonly #next = (): void => {
    const greeting = this.#take()
    if (greeting === undefined) {
      this.#isRunning = false
      return
    }
    greeting.leave()
    this.#begin(greeting.socket)
    // The handshake begins in the ticks before this one.
    process.nextTick(this.#goOn)
  }

  readonly #goOn = (): void => {
    if (performance.now() < this.#turnEnds) this.#next()
    else this.#afterOthers(this.#beginTurn)
  }
}

export class HandshakeTurns {
  readonly #limit: number
  readonly #knownLine = new Line()
  readonly #strangersLine = new Line()
  readonly #newcomers: Newcomers
  readonly #known: Lane
  readonly #strangers: Lane

  /**
   * `limit`: milliseconds that a client may take to say hello, and may then wait.
   * `begin` begins a handshake: the hello is the first that the socket holds. `isCrowded`: whether so many clients
   * wait that strangers do not wait for others; default: never.
   */
  constructor(limit: number, begin: (socket: Socket) => void, isCrowded?: () => boolean) {
    this.#limit = limit
    this.#newcomers = new Newcomers({
      now: () => performance.now(),
      afterOthers: setImmediate,
      patience,
      isCrowded
    })
    this.#known = new Lane(() => this.#knownLine.take(), begin, setImmediate)
    this.#strangers = new Lane(
      () => this.#knownLine.take() ?? this.#strangersLine.take(),
      begin,
      this.#newcomers.afterThem
    )
  }

  /** Takes a connection. Its handshake begins in its turn. */
  add(socket: Socket, { holds, isKnown }: Greeter): void {
    this.#newcomers.came()
    socket.setTimeout(this.#limit)
    const [line, lane] = isKnown ? [this.#knownLine, this.#known] : [this.#strangersLine, this.#strangers]
    const greeting = new Greeting(socket, holds, () => {
      line.add(greeting)
      lane.run()
    })
    greeting.begin()
  }
}
