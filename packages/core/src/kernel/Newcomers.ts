/**
 * What is done for clients that nobody knows waits while others come. Node.js accepts
 * one connection in each round of its event loop: whoever stands behind two thousand
 * strangers waits for all that is done in two thousand rounds
 * (docs/decisions/0134-strangers-wait-while-others-come.md).
 */
import type { TurnsOptions } from "./Turns.ts"

export interface NewcomersOptions extends Pick<TurnsOptions, "now" | "afterOthers"> {
  /** Milliseconds after which what waits goes on, though others still come. */
  readonly patience: number
  /** Whether so many wait that they go on: there would be no room for those who come. Default: never. */
  readonly isCrowded?: (() => boolean) | undefined
}

export class Newcomers {
  readonly #options: NewcomersOptions
  #count = 0

  constructor(options: NewcomersOptions) {
    this.#options = options
  }

  /** Somebody has come. */
  came(): void {
    this.#count++
  }

  /** Calls back after a whole round of the event loop in which nobody has come, or when it need not wait any more. */
  readonly afterThem = (run: () => void): void => {
    const { afterOthers, isCrowded = () => false, now, patience } = this.#options
    const until = now() + patience
    const look = () => {
      const before = this.#count
      afterOthers(() => this.#count === before || now() >= until || isCrowded() ? run() : look())
    }
    // In the round that is under way sockets may have been looked at already.
    afterOthers(look)
  }
}
