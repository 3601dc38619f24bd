/**
 * What devices present to prove who they are, by the way they come.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { SignMethod } from "../kernel/Mac.ts"
import type { ProjectId } from "../project/Project.ts"
import type { ProvedDevice } from "./DeviceCredentials.ts"
import type { SignedWith } from "./UplinkFreshness.ts"

/** The device that a message comes from, as it says, and its address. */
export interface Claimed extends ProvedDevice {
  /** The address that it connects from. */
  readonly address: string
}

/** A client certificate whose key the device has, as the TLS handshake has shown. */
export interface PresentedCertificate {
  /** SHA-256 of the certificate, 64 lower-case hex digits. */
  readonly fingerprint: string
  /** The device that the request names; a certificate of another device is refused. Undefined: it names none. */
  readonly device: ProvedDevice | undefined
}

/** What a connecting device presents. */
export interface ConnectCredentials extends Claimed {
  /** The identifier that the device chose for itself; it is signed, not trusted. */
  readonly clientId: string
  /** Part of the signed text if the device sent one. */
  readonly timestamp?: string | undefined
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly signature: string
}

/** What a device presents that registered without being created beforehand. */
export interface TokenCredentials extends Claimed {
  /** The client id that it was given when it registered. */
  readonly clientId: string
  /** Hex of either case. */
  readonly token: string
}

/** What a device presents with a message that it has got a token for. */
export interface AccessTokenCredentials extends Claimed {
  /** Hex of either case. */
  readonly token: string
}

/** What a device presents with a message over HTTP. */
export interface UplinkCredentials extends Claimed, SignedWith {
  readonly random: string
  readonly signMethod: SignMethod
  /** Lower-case hex. */
  readonly signature: string
}

/** The device that a message over HTTP comes from. */
export interface AuthenticatedUplink {
  readonly device: DeviceIdentity
  /** Whether the product requires that the random of a message counts once. */
  readonly isOnce: boolean
}

/** What a sub-device presents through its gateway, whose id stands for the address. */
export interface SubDeviceCredentials extends Claimed {
  /** The project of the gateway; devices of other projects do not exist for it. */
  readonly projectId: ProjectId
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly signature: string
  /** The fields that may be signed; only some devices sign `cleanSession`. */
  readonly fields: Readonly<Record<string, string>>
}
