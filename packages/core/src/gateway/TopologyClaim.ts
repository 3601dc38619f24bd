/**
 * Who may attach a sub-device: what the cloud remembers of its gateways, and how
 * fresh the proof of a sub-device must be (docs/protocol/gateways.md#proofs).
 */
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { SubDeviceProof } from "./TopologyMessage.ts"

/** What is remembered of a sub-device that has had a gateway. Times are Unix milliseconds. */
export interface TopologyClaim {
  /** The latest gateway. */
  readonly gatewayId: DeviceId
  /**
   * `held`: the gateway has it; `released`: the gateway itself has given it up;
   * `closed`: the cloud has taken it away.
   */
  readonly state: "held" | "released" | "closed"
  /** The latest timestamp of a proof that was used; 0: none was. */
  readonly provedAt: number
  /** When the sub-device was last attached or detached. */
  readonly changedAt: number
}

/** On whose word sub-devices are attached. */
export type AttachedBy =
  /** The application says so. */
  | { readonly _tag: "Cloud" }
  /** The gateway has proofs. `provedAt`: their timestamps; a sub-device without has a plain proof. */
  | { readonly _tag: "Gateway"; readonly provedAt: ReadonlyMap<DeviceId, number> }

/** An attempt to attach a sub-device that does not belong to the gateway. */
export interface AttachAttempt {
  readonly by: AttachedBy
  readonly gatewayId: DeviceId
  readonly subDeviceId: DeviceId
  /** Whether it belongs to another gateway. */
  readonly isForeign: boolean
  /** Whether the gateway has an open add-session that admits the product. */
  readonly isInvited: boolean
  readonly claim: TopologyClaim | undefined
}

/**
 * Whether the attempt counts. A proof with a timestamp is used once: it must be
 * later than each proof before, and not earlier than the latest change unless the
 * gateway itself has released the sub-device. A plain proof never ends, so it takes a
 * sub-device from nobody, and one that another gateway or the cloud has taken away
 * only into an add-session.
 */
export const judgeAttempt = (
  { by, claim, gatewayId, isForeign, isInvited, subDeviceId }: AttachAttempt
): "accepted" | "other-gateway" | "spent" => {
  if (by._tag === "Cloud") return isForeign ? "other-gateway" : "accepted"
  const timestamp = by.provedAt.get(subDeviceId)
  if (timestamp === undefined) {
    if (isForeign) return "other-gateway"
    return claim === undefined || claim.state === "released" || isInvited ? "accepted" : "spent"
  }
  if (claim === undefined) return "accepted"
  const isOwn = claim.state === "released" && claim.gatewayId === gatewayId
  const isLater = timestamp > claim.provedAt && (isOwn || timestamp >= claim.changedAt)
  return isLater ? "accepted" : "spent"
}

/** What is remembered after an accepted attempt. */
export const claimAfter = ({ by, claim, gatewayId, subDeviceId }: AttachAttempt, at: number): TopologyClaim => ({
  gatewayId,
  state: "held",
  provedAt: Math.max(claim?.provedAt ?? 0, by._tag === "Gateway" ? by.provedAt.get(subDeviceId) ?? 0 : 0),
  changedAt: at
})

/**
 * How far ahead of the clock of the cloud the timestamp of a proof may be,
 * milliseconds: many devices do not know their time zone. Later ones are no times:
 * real SDKs without a clock send 2050-01-01. An earlier one is a time, however old.
 */
const aheadMillis = 86_400_000

/** Smaller numbers are seconds. */
const leastMillis = 100_000_000_000

/**
 * Returns the time of a proof, Unix milliseconds; undefined: it says none, and is
 * plain; or a sentence that says why it does not count for this gateway.
 */
export const timeOfProof = (
  { fields }: Pick<SubDeviceProof, "fields">,
  { deviceName, productKey }: DeviceIdentity,
  now: number
): number | undefined | string => {
  const { gatewayDeviceName, gatewayProductKey, timestamp = "" } = fields
  if (
    (gatewayDeviceName !== undefined || gatewayProductKey !== undefined) &&
    (gatewayDeviceName !== deviceName || gatewayProductKey !== productKey)
  ) {
    return "gatewayProductKey, gatewayDeviceName: the proof is for another gateway"
  }
  if (!/^\d{1,16}$/.test(timestamp)) return undefined
  const time = Number(timestamp) < leastMillis ? Number(timestamp) * 1000 : Number(timestamp)
  return time - now <= aheadMillis ? time : undefined
}
