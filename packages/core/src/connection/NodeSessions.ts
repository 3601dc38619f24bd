/**
 * The sessions on this node. One session of each device counts: its latest.
 */
import { Effect, type Scope } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { ChurnMap } from "../kernel/ChurnMap.ts"
import type { DeviceSession, SessionListener } from "./DeviceSession.ts"

export class NodeSessions {
  /** The session that counts, of each device. */
  readonly #current = new ChurnMap<DeviceId, DeviceSession>()
  /** All sessions that have not ended. */
  readonly #live = new WeakSet<DeviceSession>()
  /** The sessions whose status is stored. */
  readonly #stored = new WeakSet<DeviceSession>()
  readonly #listeners = new Set<Partial<SessionListener>>()

  /** Devices that have a session. */
  get size(): number {
    return this.#current.size
  }

  /** The session of the device that counts. */
  current(deviceId: DeviceId): DeviceSession | undefined {
    return this.#current.get(deviceId)
  }

  /** The sessions that count, one for each device. */
  all(): ReadonlyArray<DeviceSession> {
    return this.#current.values()
  }

  /** Whether the session counts. */
  isCurrent(session: DeviceSession): boolean {
    return this.#current.get(session.connection.device.deviceId) === session
  }

  /** Whether the status of the session is stored. */
  isStored(session: DeviceSession): boolean {
    return this.#stored.has(session)
  }

  /** Tells `listener` of all sessions from now on, until the scope closes. */
  listen(listener: Partial<SessionListener>): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => this.#listeners.add(listener)),
      () => Effect.sync(() => this.#listeners.delete(listener))
    ))
  }

  /** Makes the session the one that counts. Returns the session that counted before. */
  open(session: DeviceSession): DeviceSession | undefined {
    const { deviceId } = session.connection.device
    const previous = this.#current.get(deviceId)
    this.#live.add(session)
    this.#current.set(deviceId, session)
    for (const listener of this.#listeners) listener.attaching?.(session)
    return previous
  }

  /** The status of the session is stored. */
  markStored(session: DeviceSession): void {
    this.#stored.add(session)
  }

  /** Tells the listeners that the device of the session can be reached. */
  announce(session: DeviceSession, waiting: boolean): void {
    for (const listener of this.#listeners) listener.attached?.(session, waiting)
  }

  /** Tells the listeners that the device must no longer be connected. */
  cutOff(deviceId: DeviceId): void {
    for (const listener of this.#listeners) listener.cutOff?.(deviceId)
  }

  /**
   * Ends the session. If it was the one that counts, `previous` counts again,
   * unless `previous` has ended too.
   */
  end(session: DeviceSession, previous?: DeviceSession): void {
    const { deviceId } = session.connection.device
    this.#live.delete(session)
    for (const listener of this.#listeners) listener.detached?.(session)
    if (this.#current.get(deviceId) !== session) return
    if (previous !== undefined && this.#live.has(previous)) this.#current.set(deviceId, previous)
    else this.#current.delete(deviceId)
  }
}
