/**
 * The commands on their way to one device: delivered through its session, and neither
 * confirmed nor, if they have a reply, answered.
 */
import { Effect, Latch } from "effect"

/** Commands that are kept in mind; of more, the first count as lost. */
const maxInFlight = 100

export class InFlight {
  readonly #messageIds = new Set<number>()
  readonly #landed = Latch.makeUnsafe(true)
  readonly #all: Map<number, InFlight>

  /** `all`: what is on its way to all devices, by message id. */
  constructor(all: Map<number, InFlight>) {
    this.#all = all
  }

  /** The command has been handed to the connection. */
  add(messageId: number): void {
    if (this.#messageIds.size >= maxInFlight) this.delete(this.#messageIds.values().next().value!)
    this.#messageIds.add(messageId)
    this.#all.set(messageId, this)
    this.#landed.closeUnsafe()
  }

  /** Nothing more of the command is to come. */
  delete(messageId: number): void {
    if (!this.#messageIds.delete(messageId)) return
    if (this.#all.get(messageId) === this) this.#all.delete(messageId)
    if (this.#messageIds.size === 0) this.#landed.openUnsafe()
  }

  /** The session has ended. */
  clear(): void {
    for (const messageId of this.#messageIds) this.delete(messageId)
  }

  /** Waits until nothing is on its way. */
  get landed(): Effect.Effect<void> {
    return Effect.asVoid(this.#landed.await)
  }
}
