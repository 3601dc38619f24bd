/**
 * A clock that follows another one and runs by the time that has passed: it is
 * never set back, does not stand still, and a jump of the other clock that does not
 * last does not reach it (docs/decisions/0093-the-clock-of-the-cloud.md).
 */
import { Clock, type Duration, Effect, Schedule, type Scope } from "effect"

/** Between what the difference of another clock to the time that has passed lies, milliseconds. */
export interface ClockBounds {
  readonly least: number
  readonly most: number
}

/** A difference above this is followed only when it lasts, milliseconds. */
const unlikely = 5000
/** How long it has to last, milliseconds. */
const lasting = 60_000
/** By how much of the time that passes the clock is slower or faster while it follows. */
const rate = 0.1

const followEvery = "10 seconds"

const nanosPerMilli = 1_000_000n

/**
 * Makes a clock that asks every ten seconds where the other one is, until the scope closes. `passed`: milliseconds
 * since any instant, which no change of the system's clock changes.
 */
export const following = <E>(
  passed: () => number,
  ask: Effect.Effect<ClockBounds, E>
): Effect.Effect<Clock.Clock, E, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = new SteadyClock(passed, yield* ask)
    yield* ask.pipe(
      Effect.map((bounds) => clock.follow(bounds)),
      // It goes on by the time that passes.
      Effect.catch((error) => Effect.logWarning("The clock that this one follows does not answer", error)),
      Effect.schedule(Schedule.spaced(followEvery)),
      Effect.forkScoped
    )
    return clock
  })

export class SteadyClock implements Clock.Clock {
  readonly #passed: () => number
  readonly #system = Clock.Clock.defaultValue()
  /** What is added to the time that has passed, and to what it goes. */
  #offset: number
  #goal: number
  #lastRead: number
  /** Which way the other clock differs by much, and since when; undefined: it does not. */
  #difference: { readonly isAhead: boolean; readonly since: number } | undefined

  /** `passed`: milliseconds since any instant; the time at which the other clock is later by `bounds`. */
  constructor(passed: () => number, bounds: ClockBounds) {
    this.#passed = passed
    this.#offset = (bounds.least + bounds.most) / 2
    this.#goal = this.#offset
    this.#lastRead = passed()
  }

  /** Takes note of where the other clock is. What lies between the bounds is right already. */
  follow({ least, most }: ClockBounds): void {
    const now = this.#read()
    const goal = Math.min(Math.max(this.#offset, least), most)
    if (Math.abs(goal - this.#offset) <= unlikely) {
      this.#goal = goal
      this.#difference = undefined
      return
    }
    const isAhead = goal > this.#offset
    if (this.#difference?.isAhead !== isAhead) this.#difference = { isAhead, since: now }
    if (now - this.#difference.since < lasting) return
    this.#goal = goal
    if (!isAhead) return
    this.#offset = goal
    this.#difference = undefined
  }

  #read(): number {
    const now = this.#passed()
    const step = (now - this.#lastRead) * rate
    this.#offset += Math.min(Math.max(this.#goal - this.#offset, -step), step)
    this.#lastRead = now
    return now
  }

  #millis(): number {
    return this.#read() + this.#offset
  }

  currentTimeMillisUnsafe(): number {
    return Math.floor(this.#millis())
  }

  currentTimeNanosUnsafe(): bigint {
    const millis = this.#millis()
    const whole = Math.floor(millis)
    return BigInt(whole) * nanosPerMilli + BigInt(Math.floor((millis - whole) * Number(nanosPerMilli)))
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.#system.monotonicTimeNanosUnsafe()
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = this.#system.monotonicTimeNanos

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return this.#system.sleep(duration)
  }
}
