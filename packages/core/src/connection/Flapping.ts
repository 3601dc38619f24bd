/**
 * Finds devices that change their status again and again. The number that a status has
 * grows with each change, whichever node makes it: two changes that this node sees tell
 * how many there were between them.
 */
import type { DeviceId } from "../device/Device.ts"

/** Changes of a device within {@link window} with which it is flapping. */
export const flappingChanges = 10
/** Milliseconds. */
const window = 3_600_000
/** Devices in one of two maps. With more, those that were seen first are forgotten. */
const capacity = 65_536

interface Seen {
  /** The number of the first change in the window, and its time in Unix milliseconds. */
  readonly version: number
  readonly at: number
  /** Changes on this node that were not told. */
  untold: number
}

export class Flapping {
  #older = new Map<DeviceId, Seen>()
  #newer = new Map<DeviceId, Seen>()

  /** The status of the device has changed here. Returns how many changes to tell of; 0: the device is not flapping. */
  changed(deviceId: DeviceId, version: number, at: number): number {
    const known = this.#newer.get(deviceId) ?? this.#older.get(deviceId)
    const seen = known === undefined || known.at + window <= at ? { version, at, untold: 0 } : known
    if (seen !== known || !this.#newer.has(deviceId)) this.#keep(deviceId, seen)
    seen.untold++
    if (version - seen.version + 1 < flappingChanges) return 0
    const { untold } = seen
    seen.untold = 0
    return untold
  }

  #keep(deviceId: DeviceId, seen: Seen): void {
    if (this.#newer.size >= capacity) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(deviceId, seen)
  }
}
