/**
 * Changes of the status of devices: the reactions that are stored with them, and
 * the events that are recorded with them.
 */
import { Effect } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import type { DeviceLink, DomainEvent } from "../events/DomainEvent.ts"
import type { Reaction, Reactions, ReactTo } from "../events/Reactions.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import { throughGateway } from "../trace/TraceEntry.ts"
import type { DeviceConnection } from "./DeviceSession.ts"
import type { PresenceOutcome } from "./PresenceStore.ts"

/** A device comes online or goes offline, if the store does not ignore the change. */
export interface StatusChange {
  readonly device: DeviceIdentity
  /** Unix milliseconds. */
  readonly at: number
  readonly status: "online" | "offline"
  /** Through what it is or was online; absent: not known. */
  readonly link?: DeviceLink
  /** Why it goes offline, in a sentence for operators. */
  readonly reason?: string
}

/** What events say of a connection of this node, or of a sighting. */
export const linkOf = (
  { device, gateway, ip, transport = "other" }: Pick<DeviceConnection, "device" | "gateway" | "ip" | "transport">,
  nodeId: string
): DeviceLink => ({ address: ip, transport, nodeId, ...throughGateway(device, gateway) })

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
export const statusEvent = ({ at, device, link, reason, status }: StatusChange, version: number): DomainEvent => ({
  _tag: "DeviceStatusChanged",
  device,
  at,
  status,
  version,
  ...link === undefined ? {} : { link },
  ...reason === undefined ? {} : { reason }
})

/** The events for those of the changes that changed a status or a connection; `outcomes` has the same order. */
export const statusEvents = (
  changes: ReadonlyArray<StatusChange>,
  outcomes: ReadonlyArray<PresenceOutcome>
): ReadonlyArray<DomainEvent> =>
  changes.flatMap((change, i): ReadonlyArray<DomainEvent> => {
    const { at, device, link } = change
    const outcome = outcomes[i]!
    if (outcome._tag === "Changed") return [statusEvent(change, outcome.version)]
    // A sighting claims nothing.
    const isReplaced = outcome._tag === "Replaced" && outcome.claim !== undefined && link !== undefined
    return isReplaced ? [{ _tag: "ConnectionReplaced", device, at, link }] : []
  })
