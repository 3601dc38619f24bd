/**
 * Counts the reactions that a message about several devices sets off on all of
 * them.
 */
import type { DeviceId } from "../device/Device.ts"
import { maxReactions } from "./UplinkLimits.ts"

export class ReactionBudget {
  readonly #counts = new Map<DeviceId, number>()
  #isOverspent = false
  #isSettled = false

  /** Whether the message sets off too much and is refused on all of its devices. */
  get isOverspent(): boolean {
    return this.#isOverspent
  }

  /** Forgets the reactions on a device, whose updates run again. */
  forget(deviceId: DeviceId): void {
    this.#counts.delete(deviceId)
  }

  /** Adds reactions on a device. Returns false if they are too many together with the others. */
  spend(deviceId: DeviceId, count: number): boolean {
    this.#counts.set(deviceId, (this.#counts.get(deviceId) ?? 0) + count)
    let total = 0
    for (const each of this.#counts.values()) total += each
    if (total > maxReactions) this.#isOverspent = true
    return !this.#isOverspent
  }

  /** Returns false once: when the message is refused after updates of other devices may have run. */
  settle(): boolean {
    if (!this.#isOverspent || this.#isSettled) return true
    this.#isSettled = true
    return false
  }
}
