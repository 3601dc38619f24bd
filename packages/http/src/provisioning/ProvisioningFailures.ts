/**
 * Failures of the routes by which devices register, prove who they are, and join.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, retryData } from "../Failure.ts"
import { snakeCase } from "../SnakeCase.ts"

export const WrongSignature = failure("WrongSignature", Code.wrongSignature, "The signature is wrong")

export const WrongCipher = failure("WrongCipher", Code.wrongSignature, "The cipher is not what the device would make")

export const ProofRefused = failure(
  "ProofRefused",
  Code.wrongSignature,
  "The application refuses what the device proves itself with"
)

export const CertificateRequired = failure(
  "CertificateRequired",
  Code.wrongSignature,
  "The device proves who it is with a client certificate, not with a signature"
)

export const CertificateRefused = failure(
  "CertificateRefused",
  Code.wrongSignature,
  "The client certificate does not count, or belongs to another device"
)

export const SubDeviceOnly = failure(
  "SubDeviceOnly",
  Code.operationUnfit,
  "The device speaks through its gateway"
)

export const UnfreshSignature = failure(
  "UnfreshSignature",
  Code.wrongSignature,
  "The signature does not show that the message is new and whole"
)

export const TooManyRandoms = failure(
  "TooManyRandoms",
  Code.tooMany,
  "The device sends more messages than can be told from replays; try again later",
  retryData
)

export const RandomUsed = failure("RandomUsed", Code.wrongSignature, "The device has used the random before")

export const TooManyWrongSignatures = failure(
  "TooManyWrongSignatures",
  Code.tooMany,
  "Too many wrong signatures; try again later",
  retryData
)

export const RegistrationOff = failure(
  "RegistrationOff",
  Code.registrationOff,
  "Dynamic registration of the product is off"
)

export const AlreadyActive = failure("AlreadyActive", Code.alreadyActive, "The device has been active")

export const NoDeviceLeft = failure("NoDeviceLeft", Code.alreadyActive, "Each device of the product is registered")

export const RandomNotReported = failure(
  "RandomNotReported",
  Code.randomNotReported,
  "The device has not reported its random yet"
)

/** From the errors of the domain. */
export const provisioningFailures = {
  WrongSignature: ({ deviceName, productKey }: Core.WrongSignature) =>
    WrongSignature.make({ message: `sign: it is not what ${deviceName} of product ${productKey} would sign` }),
  WrongCipher: ({ deviceName, productKey }: Core.WrongCipher) =>
    WrongCipher.make({
      message: `cipher: it is not what ${deviceName} of product ${productKey} would make of random`
    }),
  ProofRefused: ({ message }: Core.ProofRefused) => ProofRefused.make({ message }),
  CertificateRequired: ({ message }: Core.CertificateRequired) => CertificateRequired.make({ message }),
  CertificateRefused: ({ reason }: Core.CertificateRefused) => CertificateRefused.make({ message: reason }),
  SubDeviceOnly: ({ deviceName, productKey }: Core.SubDeviceOnly) =>
    SubDeviceOnly.make({
      message: `device_name: ${deviceName} of product ${productKey} is a sub-device and speaks through its gateway`
    }),
  RandomUsed: ({ random }: Core.RandomUsed) =>
    RandomUsed.make({ message: `random: ${random} was used a short time ago; send another one` }),
  UnfreshSignature: ({ expected, field }: Core.UnfreshSignature) =>
    UnfreshSignature.make({ message: `${snakeCase(field)}: ${expected}` }),
  TooManyRandoms: ({ retryAfter }: Core.TooManyRandoms) =>
    TooManyRandoms.make({
      message: "random: the device has used too many within a few minutes; try again later",
      data: { retry_after: retryAfter }
    }),
  TooManyWrongSignatures: ({ retryAfter }: Core.TooManyWrongSignatures) =>
    TooManyWrongSignatures.make({
      message: "Too many wrong signatures from this device or address; try again later",
      data: { retry_after: retryAfter }
    }),
  RegistrationOff: ({ message }: Core.RegistrationOff) => RegistrationOff.make({ message }),
  AlreadyActive: ({ message }: Core.AlreadyActive) => AlreadyActive.make({ message }),
  NoDeviceLeft: ({ message }: Core.NoDeviceLeft) => NoDeviceLeft.make({ message }),
  RandomNotReported: ({ message }: Core.RandomNotReported) => RandomNotReported.make({ message })
}
