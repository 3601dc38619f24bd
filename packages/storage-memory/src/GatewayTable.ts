/**
 * Which gateway carries each sub-device, and the sub-devices of each gateway.
 */
import type { DeviceId } from "@device-cloud/core"

export class GatewayTable {
  readonly #gatewayOf = new Map<DeviceId, DeviceId>()
  readonly #subDevicesOf = new Map<DeviceId, Set<DeviceId>>()

  /** The gateway of the sub-device. */
  get(subDeviceId: DeviceId): DeviceId | undefined {
    return this.#gatewayOf.get(subDeviceId)
  }

  /** The sub-devices of the gateway, the latest last. */
  subDevicesOf(gatewayId: DeviceId): ReadonlyArray<DeviceId> {
    return [...this.#subDevicesOf.get(gatewayId) ?? []]
  }

  /** Puts the sub-device behind the gateway, as its latest, in place of an earlier gateway. */
  set(subDeviceId: DeviceId, gatewayId: DeviceId): void {
    this.delete(subDeviceId)
    this.#gatewayOf.set(subDeviceId, gatewayId)
    const known = this.#subDevicesOf.get(gatewayId)
    if (known === undefined) this.#subDevicesOf.set(gatewayId, new Set([subDeviceId]))
    else known.add(subDeviceId)
  }

  delete(subDeviceId: DeviceId): void {
    const gatewayId = this.#gatewayOf.get(subDeviceId)
    if (gatewayId === undefined) return
    this.#gatewayOf.delete(subDeviceId)
    const left = this.#subDevicesOf.get(gatewayId)!
    left.delete(subDeviceId)
    if (left.size === 0) this.#subDevicesOf.delete(gatewayId)
  }
}
