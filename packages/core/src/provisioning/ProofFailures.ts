/**
 * Why what a device presents does not admit it.
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"

/** The signature or token does not belong to the device. */
export class WrongSignature extends DomainError<WrongSignature>()(
  "WrongSignature",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) => `The signature is not what ${deviceName} of product ${productKey} would sign`
) {}

/** The devices of the product prove who they are with a client certificate, not with a signature. */
export class CertificateRequired extends DomainError<CertificateRequired>()(
  "CertificateRequired",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) =>
    `${deviceName} of product ${productKey} needs its client certificate, over TLS that ends at this server`
) {}

/** The client certificate of the device does not count, or it belongs to another device than the one that is named. */
export class CertificateRefused extends DomainError<CertificateRefused>()(
  "CertificateRefused",
  {
    /** The device that holds the certificate. */
    productKey: Schema.String,
    deviceName: Schema.String,
    reason: Schema.String
  },
  ({ deviceName, productKey, reason }) => `${deviceName} of product ${productKey}: ${reason}`
) {}

/** The device has no connection of its own: it speaks through its gateway. Only one with a right proof learns this. */
export class SubDeviceOnly extends DomainError<SubDeviceOnly>()(
  "SubDeviceOnly",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) =>
    `${deviceName} of product ${productKey} is a sub-device and speaks through its gateway`
) {}
