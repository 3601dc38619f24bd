/**
 * Turns of proofs whose check takes time: no more are checked at once than may
 * fail. The others of their address wait.
 */
import { Effect } from "effect"

export interface Options<in S, out E> {
  readonly addressOf: (suspect: S) => string
  /** The name with its address. */
  readonly nameOf: (suspect: S) => string
  /** How often the address may still fail. */
  readonly addressLeft: (suspect: S) => number
  /** How often the name may still fail. */
  readonly nameLeft: (suspect: S) => number
  /** Why the suspect is refused; undefined: it is not. It is if nothing is left. */
  readonly refusal: (suspect: S) => E | undefined
  /** Why the suspect is refused when too many wait. */
  readonly overload: () => E
}

/** Proofs of one address that wait at most. */
const maxWaiting = 8192

interface Waiting<S, E> {
  readonly suspect: S
  readonly resume: (turn: Effect.Effect<void, E>) => void
}

/** The proofs of one address. */
interface OfAddress<S, E> {
  underway: number
  readonly names: Map<string, number>
  /** In the order in which they came. */
  readonly waiting: Set<Waiting<S, E>>
}

export class ProofTurns<S, E> {
  readonly #options: Options<S, E>
  readonly #addresses = new Map<string, OfAddress<S, E>>()

  constructor(options: Options<S, E>) {
    this.#options = options
  }

  /** Runs the check of a suspect in its turn. */
  run<A, E2, R>(suspect: S, check: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        restore(this.#turn(suspect)),
        () => Effect.ensuring(restore(check), Effect.sync(() => this.#end(suspect)))
      )
    )
  }

  #turn(suspect: S): Effect.Effect<void, E> {
    return Effect.callback((resume) => {
      const refused = this.#options.refusal(suspect)
      if (refused !== undefined) return resume(Effect.fail(refused))
      const address = this.#options.addressOf(suspect)
      const proofs: OfAddress<S, E> = this.#addresses.get(address) ??
        { underway: 0, names: new Map(), waiting: new Set() }
      if (this.#hasRoom(proofs, suspect)) {
        this.#addresses.set(address, proofs)
        this.#begin(proofs, suspect)
        return resume(Effect.void)
      }
      if (proofs.waiting.size >= maxWaiting) return resume(Effect.fail(this.#options.overload()))
      const waiting: Waiting<S, E> = { suspect, resume }
      proofs.waiting.add(waiting)
      return Effect.sync(() => void proofs.waiting.delete(waiting))
    })
  }

  #hasRoom(proofs: OfAddress<S, E>, suspect: S): boolean {
    const { addressLeft, nameLeft, nameOf } = this.#options
    return proofs.underway < addressLeft(suspect) &&
      (proofs.names.get(nameOf(suspect)) ?? 0) < nameLeft(suspect)
  }

  #begin(proofs: OfAddress<S, E>, suspect: S): void {
    const name = this.#options.nameOf(suspect)
    proofs.underway++
    proofs.names.set(name, (proofs.names.get(name) ?? 0) + 1)
  }

  /** Ends a turn, and gives turns to those that wait. */
  #end(suspect: S): void {
    const { addressLeft, addressOf, nameOf, refusal } = this.#options
    const address = addressOf(suspect)
    const proofs = this.#addresses.get(address)!
    const name = nameOf(suspect)
    const ofName = proofs.names.get(name)! - 1
    if (ofName === 0) proofs.names.delete(name)
    else proofs.names.set(name, ofName)
    proofs.underway--
    // Whoever is resumed runs at once and may come back here, so all is settled before.
    const settled: Array<() => void> = []
    const left = addressLeft(suspect)
    for (const waiting of proofs.waiting) {
      if (left > 0 && proofs.underway >= left) break
      const refused = refusal(waiting.suspect)
      if (refused === undefined && !this.#hasRoom(proofs, waiting.suspect)) continue
      proofs.waiting.delete(waiting)
      if (refused === undefined) this.#begin(proofs, waiting.suspect)
      settled.push(() => waiting.resume(refused === undefined ? Effect.void : Effect.fail(refused)))
    }
    if (proofs.underway === 0) this.#addresses.delete(address)
    for (const resume of settled) resume()
  }
}
