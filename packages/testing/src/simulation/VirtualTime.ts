/**
 * One thread and one clock for everything that happens in a simulation. Time jumps
 * from one due moment to the next; nothing waits for real time, and what is due at
 * the same moment runs in the order in which it was asked for.
 */
import { Clock, Context, type Duration, Duration as Durations, Effect, type Fiber, Random, Scheduler } from "effect"
import type { SeededRandom } from "./SeededRandom.ts"

/** Something that happens at a moment, unless it is cancelled before. */
export interface Timer {
  /** Unix milliseconds. */
  readonly at: number
  readonly order: number
  /** Undefined: it was cancelled. */
  run: (() => void) | undefined
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

export class VirtualTime {
  #now: number
  #order = 0
  /** A binary heap: the first timer is due first. */
  readonly #timers: Array<Timer> = []
  #ready: Array<() => void> = []

  /** `now`: Unix milliseconds. */
  constructor(now: number) {
    this.#now = now
  }

  /** Unix milliseconds. */
  get now(): number {
    return this.#now
  }

  /** Runs it after everything that is to happen at this moment already. */
  soon(run: () => void): void {
    this.#ready.push(run)
  }

  /** Runs it `millis` milliseconds from now. */
  after(millis: number, run: () => void): Timer {
    const timer: Timer = { at: this.#now + Math.max(Math.round(millis), 0), order: this.#order++, run }
    const timers = this.#timers
    let place = timers.length
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(timer, timers[parent]!)) break
      timers[place] = timers[parent]!
      place = parent
    }
    timers[place] = timer
    return timer
  }

  /** Lets everything happen that is due until `end`, Unix milliseconds. Afterwards it is `end`. */
  runUntil(end: number): void {
    this.#runReady()
    for (let timer = this.#timers[0]; timer !== undefined && timer.at <= end; timer = this.#timers[0]) {
      this.#removeFirst()
      if (timer.run === undefined) continue
      this.#now = timer.at
      timer.run()
      this.#runReady()
    }
    this.#now = end
  }

  #runReady(): void {
    while (this.#ready.length > 0) {
      const ready = this.#ready
      this.#ready = []
      for (const run of ready) run()
    }
  }

  #removeFirst(): void {
    const timers = this.#timers
    const last = timers.pop()!
    const { length } = timers
    if (length === 0) return
    let place = 0
    while (true) {
      let child = 2 * place + 1
      if (child >= length) break
      if (child + 1 < length && isBefore(timers[child + 1]!, timers[child]!)) child++
      if (!isBefore(timers[child]!, last)) break
      timers[place] = timers[child]!
      place = child
    }
    timers[place] = last
  }
}

/**
 * A process on the thread: fibers that are run with its {@link context} sleep by the
 * virtual clock, and stand still while the process is frozen. One that was killed
 * never runs again, not even its finalizers.
 */
export class VirtualProcess {
  readonly #time: VirtualTime
  #state: "running" | "frozen" | "killed" = "running"
  #parked: Array<() => void> = []
  /** The clock, the scheduler and the randomness of its fibers. */
  readonly context: Context.Context<never>

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time
    const scheduleTask = (task: () => void) => this.soon(task)
    const dispatcher: Scheduler.SchedulerDispatcher = { scheduleTask, flush: () => {} }
    const scheduler: Scheduler.Scheduler = {
      executionMode: "async",
      shouldYield: (fiber: Fiber.Fiber<unknown, unknown>) => fiber.currentOpCount >= 2048,
      makeDispatcher: () => dispatcher
    }
    this.context = Context.make(Clock.Clock, this.#clock()).pipe(
      Context.add(Scheduler.Scheduler, scheduler),
      Context.add(Random.Random, random)
    ) as Context.Context<never>
  }

  get isRunning(): boolean {
    return this.#state === "running"
  }

  get isKilled(): boolean {
    return this.#state === "killed"
  }

  /** Runs it in this process after everything that is to happen already. */
  soon(run: () => void): void {
    this.#time.soon(() => this.#turn(run))
  }

  /** Runs it in this process `millis` milliseconds from now, or when the process thaws. */
  after(millis: number, run: () => void): Timer {
    return this.#time.after(millis, () => this.#turn(run))
  }

  /** Runs an effect to its end, in the background. */
  fork<A, E, R>(effect: Effect.Effect<A, E, R>, context: Context.Context<R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(Context.merge(context, this.context))(effect)
  }

  /** Stands still: what comes due waits. */
  freeze(): void {
    if (this.#state === "running") this.#state = "frozen"
  }

  thaw(): void {
    if (this.#state !== "frozen") return
    this.#state = "running"
    const parked = this.#parked
    this.#parked = []
    for (const run of parked) this.soon(run)
  }

  kill(): void {
    this.#state = "killed"
    this.#parked = []
  }

  #turn(run: () => void): void {
    if (this.#state === "running") run()
    else if (this.#state === "frozen") this.#parked.push(run)
  }

  #clock(): Clock.Clock {
    const time = this.#time
    const nanos = () => BigInt(Math.round(time.now * 1000)) * 1000n
    return {
      currentTimeMillisUnsafe: () => time.now,
      currentTimeMillis: Effect.sync(() => time.now),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration: Duration.Duration) =>
        Effect.callback<void>((resume) => {
          const timer = this.after(Durations.toMillis(duration), () => resume(Effect.void))
          return Effect.sync(() => {
            timer.run = undefined
          })
        })
    }
  }
}
