/**
 * Changes of the status of devices: the reactions that are stored with them, and
 * the events that are recorded with them.
 */
import { Effect } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { Reaction, Reactions, ReactTo } from "../events/Reactions.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { PresenceOutcome } from "./PresenceStore.ts"

/** A device comes online or goes offline, if the store does not ignore the change. */
export interface StatusChange {
  readonly device: DeviceIdentity
  /** Unix milliseconds. */
  readonly at: number
  readonly status: "online" | "offline"
}

/** The products of the devices, each once. */
export const productsOf = (devices: ReadonlyArray<DeviceIdentity>): ReadonlyArray<ProductKey> => [
  ...new Set(devices.map(({ productKey }) => productKey))
]

/** Returns the reactions to a change of status. */
export const reactionsTo = (
  reactions: Reactions["Service"],
  { at, device, status }: StatusChange
): ReadonlyArray<Reaction> => {
  const { deviceId, deviceName, productKey } = device
  return reactions.reactTo(device.projectId, {
    _tag: "StatusChanged",
    device: { deviceId, productKey, deviceName },
    at,
    status
  })
}

/**
 * Loads the rules of the devices. Returns the function that a store calls for
 * the reactions to the outcomes of `changes`, in the same order; undefined if no
 * rule watches any of the devices.
 */
export const reactToOutcomes: (
  reactions: Reactions["Service"],
  changes: ReadonlyArray<StatusChange>
) => Effect.Effect<ReactTo<PresenceOutcome> | undefined, StoreError> = Effect.fnUntraced(function*(reactions, changes) {
  const devices = changes.map(({ device }) => device)
  yield* reactions.load(productsOf(devices))
  return devices.some((device) => reactions.watches("StatusChanged", device))
    ? (outcomes: ReadonlyArray<PresenceOutcome>) =>
      changes.flatMap((change, i) => outcomes[i]!._tag === "Changed" ? reactionsTo(reactions, change) : [])
    : undefined
})

/** The event for a stored change. `version`: that of the device's status after the change. */
export const statusEvent = ({ at, device, status }: StatusChange, version: number): DomainEvent => ({
  _tag: "DeviceStatusChanged",
  device,
  at,
  status,
  version
})

/** The events for those of the changes that changed a status; `outcomes` has the same order. */
export const statusEvents = (
  changes: ReadonlyArray<StatusChange>,
  outcomes: ReadonlyArray<PresenceOutcome>
): ReadonlyArray<DomainEvent> =>
  changes.flatMap((change, i) => {
    const outcome = outcomes[i]!
    return outcome._tag === "Changed" ? [statusEvent(change, outcome.version)] : []
  })
