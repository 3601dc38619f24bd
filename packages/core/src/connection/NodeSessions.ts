/**
 * The sessions on this node. One session of each device counts: its latest.
 */
import { Effect, type Scope } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { ChurnMap } from "../kernel/ChurnMap.ts"
import type { DeviceSession, SessionListener, StoredNews } from "./DeviceSession.ts"
import type { OwnerClaim } from "./PresenceStore.ts"

/** A session whose epoch is not known yet, or grows. */
export interface OwnedSession extends DeviceSession {
  epoch: number
  epochBefore: number
  /** The session that counted before, while it is not known which of the two is later. */
  before?: OwnedSession | undefined
}

export class NodeSessions {
  /** The session that counts, of each device. */
  readonly #current = new ChurnMap<DeviceId, OwnedSession>()
  /** All sessions that have not ended. */
  readonly #live = new WeakSet<DeviceSession>()
  readonly #listeners = new Set<Partial<SessionListener>>()

  /** Devices that have a session. */
  get size(): number {
    return this.#current.size
  }

  /** The session of the device that counts. */
  current(deviceId: DeviceId): OwnedSession | undefined {
    return this.#current.get(deviceId)
  }

  /** The sessions that count, one for each device. */
  all(): ReadonlyArray<OwnedSession> {
    return this.#current.values()
  }

  /** Whether the session counts. */
  isCurrent(session: DeviceSession): boolean {
    return this.#current.get(session.connection.device.deviceId) === session
  }

  /** Whether the session has not ended. */
  isLive(session: DeviceSession): boolean {
    return this.#live.has(session)
  }

  /** Tells `listener` of all sessions from now on, until the scope closes. */
  listen(listener: Partial<SessionListener>): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => this.#listeners.add(listener)),
      () => Effect.sync(() => this.#listeners.delete(listener))
    ))
  }

  /** Makes the session the one that counts. Returns the session that counted before. */
  open(session: OwnedSession): OwnedSession | undefined {
    const { deviceId } = session.connection.device
    const previous = this.#current.get(deviceId)
    session.before = previous
    this.#live.add(session)
    this.#current.set(deviceId, session)
    for (const listener of this.#listeners) listener.attaching?.(session)
    return previous
  }

  /** Tells the listeners that the device of the session can be reached. */
  announce(session: DeviceSession, claim: OwnerClaim): void {
    for (const listener of this.#listeners) listener.attached?.(session, claim)
  }

  /** Tells the listeners what the store knows of the device of the session. */
  sweep(session: DeviceSession, news: StoredNews): void {
    for (const listener of this.#listeners) listener.swept?.(session, news)
  }

  /** Tells the listeners that the session has claimed its device again. */
  reclaim(session: DeviceSession): void {
    for (const listener of this.#listeners) listener.reclaimed?.(session)
  }

  /** Tells the listeners that the device must no longer be connected. */
  cutOff(deviceId: DeviceId): void {
    for (const listener of this.#listeners) listener.cutOff?.(deviceId)
  }

  /** The session counts no more. It ends when the listeners have delivered what is on its way. */
  retire(session: DeviceSession): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isCurrent(session)) this.#current.delete(session.connection.device.deviceId)
      return this.#all(({ handingOver }) => handingOver?.(session))
    })
  }

  /**
   * Ends the session. If it was the one that counts, `previous` counts again,
   * unless `previous` has ended too. Returns false if the session had ended.
   */
  end(session: DeviceSession, previous?: OwnedSession): boolean {
    const { deviceId } = session.connection.device
    if (!this.#live.delete(session)) return false
    for (const listener of this.#listeners) listener.detached?.(session)
    if (this.#current.get(deviceId) !== session) return true
    if (previous !== undefined && this.#live.has(previous)) this.#current.set(deviceId, previous)
    else this.#current.delete(deviceId)
    return true
  }

  /** Waits until the listeners have stored what was done through a session that has ended. */
  settle(session: DeviceSession): Effect.Effect<void> {
    return this.#all(({ settled }) => settled?.(session))
  }

  #all(run: (listener: Partial<SessionListener>) => Effect.Effect<void> | undefined): Effect.Effect<void> {
    return Effect.forEach([...this.#listeners], (listener) => run(listener) ?? Effect.void, {
      concurrency: "unbounded",
      discard: true
    })
  }
}
