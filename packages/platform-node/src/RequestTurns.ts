/**
 * Requests take turns before anything is done for them, not even a fiber is made:
 * clients by their address, and at one address access keys
 * (docs/decisions/0061-turns-on-the-thread.md). New connections take turns before
 * anything is read from them. Addresses from which nobody was authenticated lately
 * take turns of their own, and wait while others come
 * (docs/decisions/0134-strangers-wait-while-others-come.md).
 */
import { addressGroup, type KnownAddresses, Newcomers, Turns } from "@device-cloud/core"
import { Effect, type Scope } from "effect"
import type { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

type Handle = (source: IncomingMessage, response: ServerResponse) => void

/** How requests come, the other one with `Expect: 100-continue`. */
const events = ["request", "checkContinue"] as const

/** New connections that are read before others are looked at: each may send 64 KiB at once. */
const connectionsAtOnce = 16

/**
 * Milliseconds that addresses that are not known wait for others to come, at most, before so many of their connections
 * are read, and before their requests have another turn.
 */
const strangersPatience = 25

const timing = { now: () => performance.now(), afterOthers: setImmediate }

export class RequestTurns {
  readonly addressOf: (source: IncomingMessage) => string
  readonly #known: KnownAddresses["Service"] | undefined
  readonly #turns = new Turns(timing)
  readonly #connections = new Turns({ ...timing, maxRuns: connectionsAtOnce })
  readonly #newcomers = new Newcomers({ ...timing, patience: strangersPatience })
  readonly #strangers = new Turns({ ...timing, afterOthers: this.#newcomers.afterThem })
  readonly #strangersConnections = new Turns({
    ...timing,
    maxRuns: connectionsAtOnce,
    afterOthers: this.#newcomers.afterThem
  })

  /** `known`: undefined knows nobody, and each address is a client. */
  constructor(addressOf: (source: IncomingMessage) => string, known: KnownAddresses["Service"] | undefined) {
    this.addressOf = addressOf
    this.#known = known
  }

  /** Whether work for a request may run at once. A stranger overtakes no stranger who waits. */
  mayRun(source: IncomingMessage): boolean {
    return !(this.#strangers.isAwaited && this.#isStranger(this.addressOf(source))) && this.#turns.mayRun()
  }

  /** Calls `run` when the turn of the client comes. */
  wait(source: IncomingMessage, run: () => void): void {
    const address = this.addressOf(source)
    if (this.#isStranger(address)) this.#strangers.wait(address, "", run)
    else this.#turns.wait(address, source.headers.authorization ?? "", run)
  }

  /** Lets new connections wait until they are read. Call it before the server listens. */
  takeConnections(server: EventEmitter): void {
    // An option of servers of Node.js that those of HTTP keep to themselves.
    Object.assign(server, { pauseOnConnect: true })
    server.on("connection", (socket: Socket) => {
      this.#newcomers.came()
      const address = addressGroup(socket.remoteAddress ?? "")
      const connections = this.#isStranger(address) ? this.#strangersConnections : this.#connections
      if (connections.mayRun()) socket.resume()
      else connections.wait(address, "", () => socket.resume())
    })
  }

  /** Lets the requests wait that `serve` listens for. */
  takenOn<R>(server: EventEmitter, serve: Effect.Effect<void, never, R>): Effect.Effect<void, never, R | Scope.Scope> {
    return Effect.suspend(() => {
      const before = events.map((event) => new Set(server.listeners(event)))
      return Effect.andThen(
        serve,
        Effect.suspend(() =>
          Effect.forEach(events, (event, i) => {
            const added = server.listeners(event).filter((listener) => !before[i]!.has(listener)) as Array<Handle>
            return Effect.forEach(added, (handle) => this.#delay(server, event, handle), { discard: true })
          }, { discard: true })
        )
      )
    })
  }

  #isStranger(address: string): boolean {
    return this.#known?.has(address) === false
  }

  #delay(server: EventEmitter, event: string, handle: Handle): Effect.Effect<void, never, Scope.Scope> {
    const inTurn: Handle = (source, response) => {
      if (this.mayRun(source)) return handle(source, response)
      this.wait(source, () => {
        // The client may have gone meanwhile.
        if (!response.destroyed) handle(source, response)
      })
    }
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => server.off(event, handle).on(event, inTurn)),
      () => Effect.sync(() => server.off(event, inTurn))
    ))
  }
}
