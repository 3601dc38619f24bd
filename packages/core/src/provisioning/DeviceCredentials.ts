/**
 * Proofs of a device's identity beside the signatures: tokens, client
 * certificates, whatever an application accepts.
 */
import { Context, type Effect, type Option, Schema } from "effect"
import type { DeviceName } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"

/**
 * The provers of an application. The default is none: devices prove who they are
 * with signatures alone.
 *
 * `DeviceAuthenticator` asks the provers in order. The first that takes a proof
 * decides; if none does, the device needs a signature.
 *
 * ```ts
 * const Cloud = DeviceCloud.layer.pipe(
 *   Layer.provide(Layer.succeed(DeviceCredentials, [tokens, certificates])),
 *   Layer.provide(StorageMemory.layer),
 *   Layer.provideMerge(PlatformNode.layer)
 * )
 * ```
 */
export const DeviceCredentials: Context.Reference<ReadonlyArray<DeviceProver>> = Context.Reference(
  "@device-cloud/core/provisioning/DeviceCredentials",
  { defaultValue: (): ReadonlyArray<DeviceProver> => [] }
)

/**
 * Checks one kind of proof. Returns the device that is proved, or none if the
 * device presents no proof of this kind. Fails with `ProofRefused` if it presents
 * one that is wrong: no other prover is asked, and the failure counts against the
 * device and its address as a wrong signature does. Fails with `StoreError` if
 * the proof cannot be checked now: the device may try again.
 *
 * The prover decides who the device is and nothing else: `DeviceAuthenticator`
 * refuses devices that do not exist or are disabled.
 */
export type DeviceProver = (
  presented: PresentedCredentials
) => Effect.Effect<Option.Option<ProvedDevice>, ProofRefused | StoreError>

/** The device that a proof belongs to. */
export interface ProvedDevice {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
}

/** What a device presents when it connects, or with a message over a transport without connections. */
export interface PresentedCredentials {
  /** `mqtt`, `http`, or the name of an application's own transport. */
  readonly transport: string
  /** The address that the device connects from. */
  readonly address: string
  /**
   * The device that the request names, if the transport requires a name: a proof
   * of another device is refused.
   */
  readonly device?: ProvedDevice | undefined
  /** The client id of CONNECT, as the device sent it. */
  readonly clientId?: string | undefined
  /** The user name of CONNECT. */
  readonly userName?: string | undefined
  /** The password of CONNECT; over HTTP the `sign` of the query. */
  readonly password?: string | undefined
  /** The Authorization header of an HTTP request. */
  readonly authorization?: string | undefined
  /** The certificate of the device, if the transport has verified it against the authorities that it trusts. */
  readonly certificate?: ClientCertificate | undefined
}

/** A TLS client certificate. */
export interface ClientCertificate {
  /** The certificate in DER. */
  readonly der: Uint8Array
  /** SHA-256 of the DER bytes, 64 lower-case hex digits. */
  readonly fingerprint: string
  /** The common name of the subject; undefined if it has none. */
  readonly commonName: string | undefined
}

/** A device presents a proof that is wrong. */
export class ProofRefused extends DomainError<ProofRefused>()(
  "ProofRefused",
  {
    /** Why, for the log; devices do not see it over MQTT. */
    reason: Schema.String
  },
  ({ reason }) => reason
) {}
