/**
 * Notes deliveries of which the store does not know, as steps of the commands.
 */
import { Effect } from "effect"
import type { Command } from "./Command.ts"

/** How soon a delivery is noted at the latest. */
const noteWithin = "100 millis"

export class DeliveryNotes {
  readonly #unnoted = new Map<number, Command>()
  readonly #sent: (command: Command) => void
  readonly #runFork: (effect: Effect.Effect<void>) => void

  /** `sent`: takes the step. `runFork`: runs in the background. */
  constructor(sent: (command: Command) => void, runFork: (effect: Effect.Effect<void>) => void) {
    this.#sent = sent
    this.#runFork = runFork
  }

  /** The command is delivered. It is noted with its next step if that comes soon, so that both are one write. */
  readonly later = (command: Command): void => {
    if (this.#unnoted.size === 0) this.#runFork(Effect.delay(Effect.sync(() => this.now()), noteWithin))
    this.#unnoted.set(command.messageId, command)
  }

  /** The next step of the command comes. */
  before(command: Command): void {
    if (this.#unnoted.delete(command.messageId)) this.#sent(command)
  }

  /** Notes all deliveries. */
  now(): void {
    this.#unnoted.forEach((command) => this.#sent(command))
    this.#unnoted.clear()
  }
}
