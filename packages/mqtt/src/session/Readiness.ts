/**
 * When the software of a device is ready for what the cloud sends of its own
 * accord: public SDKs set up their handlers after the CONNACK, and lose or fail on
 * what comes earlier (docs/decisions/0062-when-devices-listen.md).
 */
import { Clock, Context, Duration, Effect, Schedule, type Scope } from "effect"

/** How long the cloud waits for the software of a device. */
export interface ListeningTimes {
  /** Commands leave when the device has subscribed or published, and then not for this long. Default: 1 second. */
  readonly quiet: Duration.Input
  /** Commands leave this long after the connect at the latest. Default: 3 seconds. */
  readonly longest: Duration.Input
  /** A device that has subscribed to its shadow topic for this long gets what is desired. Default: 3 seconds. */
  readonly shadow: Duration.Input
}

export const ListeningTimes = Context.Reference<ListeningTimes>("@device-cloud/mqtt/ListeningTimes", {
  defaultValue: () => ({ quiet: "1 second", longest: "3 seconds", shadow: "3 seconds" })
})

/** Milliseconds between two looks at the devices that something waits for. */
const lookMillis = 100

/** What the connections of a broker share. One fiber looks at all devices that something waits for. */
export interface ReadinessWatch {
  /** Milliseconds. */
  readonly quiet: number
  readonly longest: number
  readonly shadow: number
  /** Unix milliseconds. */
  readonly now: () => number
  /** The devices that something waits for. */
  readonly awaited: Set<Readiness>
}

export const makeWatch: Effect.Effect<ReadinessWatch, never, Scope.Scope> = Effect.gen(function*() {
  const times = yield* ListeningTimes
  const clock = yield* Clock.Clock
  const awaited = new Set<Readiness>()
  yield* Effect.sync(() => {
    for (const readiness of awaited) readiness.look()
  }).pipe(Effect.repeat(Schedule.spaced(lookMillis)), Effect.forkScoped)
  return {
    quiet: Duration.toMillis(times.quiet),
    longest: Duration.toMillis(times.longest),
    shadow: Duration.toMillis(times.shadow),
    now: () => clock.currentTimeMillisUnsafe(),
    awaited
  }
})

/** What is known of the shadow topic of one device. */
interface ShadowTopic {
  /** Whether the device listens. */
  isHeard: boolean
  /** When the device has subscribed, Unix milliseconds; undefined: it has not. */
  since: number | undefined
  /** What to call once it listens. */
  onHeard: (() => void) | undefined
}

/** The readiness of the device of one connection, and of the sub-devices behind it. */
export class Readiness {
  readonly #watch: ReadinessWatch
  #isReady = false
  /** When the CONNACK was sent, and when the device has last subscribed or published; Unix milliseconds. */
  #openedAt: number | undefined
  #heardAt: number | undefined
  #waiting: Array<() => void> = []
  /** By the device that owns the topic. */
  readonly #shadows = new Map<string, ShadowTopic>()

  constructor(watch: ReadinessWatch) {
    this.#watch = watch
  }

  /** The CONNACK has been sent. `owners`: the devices to whose shadows a resumed session listens; undefined: it is new. */
  opened(owners: ReadonlyArray<string> | undefined): void {
    this.#openedAt = this.#watch.now()
    for (const owner of owners ?? []) this.usesShadow(owner)
    if (owners !== undefined) this.#becomeReady()
    else this.isReady()
  }

  /** The device has subscribed or published. `at`: Unix milliseconds. */
  heard(at: number): void {
    if (!this.#isReady) this.#heardAt = at
  }

  /** Whether the device takes commands. */
  isReady(): boolean {
    if (this.#isReady) return true
    if (this.#openedAt === undefined) return false
    const { longest, now, quiet } = this.#watch
    const at = now()
    const connected = at - this.#openedAt
    // A clock that was set back ends the wait.
    const isOver = connected < 0 || connected + lookMillis > longest ||
      (this.#heardAt !== undefined && (at < this.#heardAt || at - this.#heardAt >= quiet))
    if (isOver) this.#becomeReady()
    return isOver
  }

  /** Calls `then` when the device takes commands, or the connection has ended. */
  whenReady(then: () => void): void {
    if (this.isReady()) return then()
    this.#waiting.push(then)
    this.#watch.awaited.add(this)
  }

  /** The device has subscribed to the shadow topic of its own or of a sub-device. */
  subscribesShadow(owner: string): void {
    const topic = this.#shadowOf(owner)
    topic.since ??= this.#watch.now()
    if (topic.onHeard !== undefined) this.#watch.awaited.add(this)
  }

  /** The device has unsubscribed from that topic. */
  unsubscribesShadow(owner: string): void {
    const topic = this.#shadows.get(owner)
    if (topic !== undefined) topic.since = undefined
  }

  /** The device has spoken about the shadow: it listens from now on. */
  usesShadow(owner: string): void {
    const topic = this.#shadowOf(owner)
    if (topic.isHeard) return
    topic.isHeard = true
    const { onHeard } = topic
    topic.onHeard = undefined
    onHeard?.()
  }

  /** Whether the device listens to the shadow; otherwise `then` is called once it does. */
  hearsShadow(owner: string, then: () => void): boolean {
    const topic = this.#shadowOf(owner)
    if (topic.isHeard || this.#isSubscribedLongEnough(topic)) return topic.isHeard = true
    topic.onHeard = then
    if (topic.since !== undefined) this.#watch.awaited.add(this)
    return false
  }

  /** Lets go what waits for this device as far as it is ready. */
  look(): void {
    if (!this.isReady() && this.#waiting.length > 0) return
    let isAwaited = false
    for (const [owner, topic] of this.#shadows) {
      if (topic.onHeard === undefined || topic.since === undefined) continue
      if (this.#isSubscribedLongEnough(topic)) this.usesShadow(owner)
      else isAwaited = true
    }
    if (!isAwaited) this.#watch.awaited.delete(this)
  }

  /** The connection has ended. */
  end(): void {
    this.#watch.awaited.delete(this)
    this.#shadows.clear()
    this.#becomeReady()
  }

  #becomeReady(): void {
    this.#isReady = true
    const waiting = this.#waiting
    this.#waiting = []
    for (const then of waiting) then()
  }

  #isSubscribedLongEnough({ since }: ShadowTopic): boolean {
    if (since === undefined) return false
    const elapsed = this.#watch.now() - since
    return elapsed < 0 || elapsed >= this.#watch.shadow
  }

  #shadowOf(owner: string): ShadowTopic {
    const known = this.#shadows.get(owner)
    if (known !== undefined) return known
    const topic: ShadowTopic = { isHeard: false, since: undefined, onHeard: undefined }
    this.#shadows.set(owner, topic)
    return topic
  }
}
