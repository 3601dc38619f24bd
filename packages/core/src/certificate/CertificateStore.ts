/**
 * Port: the client certificates of devices, and their authorities.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceName } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type {
  CertificateAuthority,
  DeviceCertificate,
  NewAuthority,
  NewCertificate,
  RevocationList
} from "./Certificate.ts"

/** A certificate with the device that it belongs to. */
export interface HeldCertificate extends DeviceCertificate {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
}

/** An authority whose key the cloud has. */
export interface SigningAuthority {
  readonly authority: CertificateAuthority
  /** PKCS #8 in PEM. */
  readonly privateKey: string
}

/** A serial number on a revocation list. */
export interface RevokedSerial {
  readonly serial: string
  /** Unix milliseconds. */
  readonly revokedAt: number
}

/**
 * Laws: each call is one transaction. A fingerprint belongs to one certificate, of
 * all projects. The certificates of a device go with it, those of an authority with
 * the authority, and authorities with their project. A certificate is revoked if
 * `revoke` has revoked it, or if its serial number is on the list of its authority.
 * A private key is secret: it leaves the store through `ownAuthority` alone.
 */
export class CertificateStore extends Context.Service<CertificateStore, {
  /**
   * Stores an authority; with a private key, the own one of its project. Returns
   * `taken` if the project has this certificate, or has an own authority and this
   * is another, `full` if it has `limit` authorities, and `no-project` if there is no
   * such project.
   */
  readonly insertAuthority: (
    authority: NewAuthority,
    options: { readonly privateKey: string | null; readonly limit: number }
  ) => Effect.Effect<"inserted" | "taken" | "full" | "no-project", StoreError>
  /** Returns the authorities of the project, the oldest first. */
  readonly authorities: (projectId: ProjectId) => Effect.Effect<ReadonlyArray<CertificateAuthority>, StoreError>
  /** Returns an authority. */
  readonly authority: (
    projectId: ProjectId,
    authorityId: string
  ) => Effect.Effect<Option.Option<CertificateAuthority>, StoreError>
  /** Returns the own authority of the project with its key. */
  readonly ownAuthority: (projectId: ProjectId) => Effect.Effect<Option.Option<SigningAuthority>, StoreError>
  /** Sets the state to `active`. Returns false if there is no such authority. */
  readonly activateAuthority: (projectId: ProjectId, authorityId: string) => Effect.Effect<boolean, StoreError>
  /** Removes an authority with its certificates. Returns false if there is none. */
  readonly removeAuthority: (projectId: ProjectId, authorityId: string) => Effect.Effect<boolean, StoreError>
  /**
   * Replaces the revocation list of an authority. Of several entries with one serial
   * number, the first counts. Returns `older` if the stored list was issued later, and
   * `not-found` if there is no such authority.
   */
  readonly putRevocationList: (
    projectId: ProjectId,
    authorityId: string,
    list: RevocationList,
    revoked: ReadonlyArray<RevokedSerial>
  ) => Effect.Effect<"stored" | "older" | "not-found", StoreError>
  /**
   * Stores a certificate, and removes those of the device that have ended at
   * `createdAt` or that `revoke` has revoked, except revoked ones of registered
   * authorities that have not expired: they must not come back. What only the list
   * of an authority revokes stays: a later list may let it count again.
   * `othersEndAt`: when the others of the device stop to count at the latest, Unix
   * milliseconds; null: they are not touched. Returns `taken` if the fingerprint, or
   * the serial number at this device, is there, and `full` if the device has `limit`
   * others, revoked ones included; then nothing of the others changes but what is
   * removed.
   */
  readonly insert: (
    certificate: NewCertificate,
    options: { readonly othersEndAt: number | null; readonly limit: number }
  ) => Effect.Effect<"inserted" | "taken" | "full" | "no-device" | "no-authority", StoreError>
  /** Returns the certificates of the device, the newest first. */
  readonly ofDevice: (deviceId: DeviceId) => Effect.Effect<ReadonlyArray<DeviceCertificate>, StoreError>
  /**
   * Revokes a certificate at `at`, Unix milliseconds, and returns it. One that is
   * revoked, here or on the list of its authority, keeps its time; no later list
   * lets it count again.
   */
  readonly revoke: (
    deviceId: DeviceId,
    serial: string,
    at: number
  ) => Effect.Effect<Option.Option<DeviceCertificate>, StoreError>
  /** Returns a certificate with its device. Many calls at a time are usual: devices connect together. */
  readonly find: (fingerprint: string) => Effect.Effect<Option.Option<HeldCertificate>, StoreError>
}>()("@device-cloud/core/certificate/CertificateStore") {}
