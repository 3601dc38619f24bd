/**
 * Finds out whether a device is who it says it is.
 */
import { Clock, Context, Effect, Layer, Option, Predicate, Result } from "effect"
import { refusalOf } from "../certificate/Certificate.ts"
import { HeldCertificates } from "../certificate/HeldCertificates.ts"
import type { NodeBus } from "../cluster/NodeBus.ts"
import {
  DeviceDisabled,
  type DeviceIdentity,
  deviceKey,
  DeviceNotFound,
  type StoredCredentials
} from "../device/Device.ts"
import type { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DeviceStore } from "../device/DeviceStore.ts"
import { equalInConstantTime, Mac } from "../kernel/Mac.ts"
import { rightSecret } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { AccessTokenExpired, accessTokenMillis, endOfAccessToken, makeAccessToken } from "./AccessToken.ts"
import * as CredentialCache from "./CredentialCache.ts"
import type {
  AccessTokenCredentials,
  AuthenticatedUplink,
  Claimed,
  ConnectCredentials,
  PresentedCertificate,
  SubDeviceCredentials,
  TokenCredentials,
  UplinkCredentials
} from "./Credentials.ts"
import { DeviceCredentials, type PresentedCredentials, ProofRefused, type ProvedDevice } from "./DeviceCredentials.ts"
import { connectText, fieldsText, tokenLength, tokenText, uplinkText } from "./Signature.ts"
import { refuseUnfresh, type UnfreshSignature, UplinkTolerance } from "./UplinkFreshness.ts"
import { CertificateRefused, CertificateRequired, SubDeviceOnly, WrongSignature } from "./ProofFailures.ts"
import { SignatureGuard, type TooManyWrongSignatures } from "./SignatureGuard.ts"

/**
 * Checks what devices present. Every check fails with `DeviceNotFound` for an
 * unknown device, with `DeviceDisabled` for a disabled one whose proof is right,
 * with `TooManyWrongSignatures` when the device or its address has failed too
 * often, and with `StoreError` when the device cannot be looked up. Each check but
 * that of a sub-device fails with `SubDeviceOnly` for a device of node type
 * `gateway-sub` with a right proof: such a proof passes through the hands of
 * gateways, and must not admit whoever has seen it.
 */
export class DeviceAuthenticator extends Context.Service<DeviceAuthenticator, {
  /**
   * Asks the application's provers (`DeviceCredentials`). Returns none if none of
   * them takes the proof: the device then needs a signature or a token of ours.
   */
  readonly prove: (
    presented: PresentedCredentials
  ) => Effect.Effect<
    Option.Option<DeviceIdentity>,
    Exclude<DirectlyRefused, WrongSignature | CertificateRequired> | ProofRefused
  >
  /**
   * Finds the device that holds a client certificate. Returns none if no device
   * does: it then needs a signature. A certificate cannot be guessed, so failures
   * do not count against the device and its address.
   */
  readonly authenticateCertificate: (
    presented: PresentedCertificate
  ) => Effect.Effect<
    Option.Option<DeviceIdentity>,
    CertificateRefused | DeviceNotFound | DeviceDisabled | SubDeviceOnly | StoreError
  >
  /** Checks the signature of a device that connects. */
  readonly authenticate: (credentials: ConnectCredentials) => Effect.Effect<DeviceIdentity, DirectlyRefused>
  /**
   * Checks a signature as `authenticate` does, and returns a token that stands for
   * it for seven days, as long as the secret counts that has signed. Fails with
   * `UnfreshSignature` if the product requires a fresh signature of each message.
   */
  readonly issueAccessToken: (
    credentials: ConnectCredentials
  ) => Effect.Effect<string, DirectlyRefused | UnfreshSignature>
  /** Checks a token of `issueAccessToken`. */
  readonly authenticateAccessToken: (
    credentials: AccessTokenCredentials
  ) => Effect.Effect<DeviceIdentity, DirectlyRefused | UnfreshSignature | AccessTokenExpired>
  /** Checks the token of a device that registered without being created beforehand. */
  readonly authenticateToken: (credentials: TokenCredentials) => Effect.Effect<DeviceIdentity, DirectlyRefused>
  /**
   * Checks the signature of a message over HTTP. Fails with `UnfreshSignature` if
   * it is right and does not count: its timestamp is not within `UplinkTolerance`,
   * or it does not cover what the product requires.
   */
  readonly authenticateUplink: (
    credentials: UplinkCredentials
  ) => Effect.Effect<AuthenticatedUplink, DirectlyRefused | UnfreshSignature>
  /** Checks the signature of a sub-device that logs in through its gateway. */
  readonly authenticateSubDevice: (credentials: SubDeviceCredentials) => Effect.Effect<DeviceIdentity, Refused>
  /**
   * Returns the enabled device of these names; none if there is none. For messages
   * of devices that somebody else has let in after one of the checks above, for
   * example a broker in front of the cloud.
   */
  readonly admitted: (device: ProvedDevice) => Effect.Effect<Option.Option<DeviceIdentity>, StoreError>
}>()("@device-cloud/core/provisioning/DeviceAuthenticator") {
  static readonly layer: Layer.Layer<
    DeviceAuthenticator,
    never,
    DeviceStore | DeviceLifecycle | HeldCertificates | NodeBus | Mac | SignatureGuard
  > = Layer.effect(DeviceAuthenticator, Effect.suspend(() => make))
}

type Refused =
  | DeviceNotFound
  | WrongSignature
  | DeviceDisabled
  | TooManyWrongSignatures
  | StoreError
type DirectlyRefused = Refused | SubDeviceOnly | CertificateRequired

/** Failures that count against the device and its address. Guesses at names count, too. */
const isWrong = Predicate.some([
  Predicate.isTagged("WrongSignature"),
  Predicate.isTagged("CertificateRequired"),
  Predicate.isTagged("DeviceNotFound"),
  Predicate.isTagged("ProofRefused")
])

/** Characters of a name under which failures are counted. */
const maxNameLength = 256

/** The name under which a failed proof is counted: nobody shares it by accident. */
const suspectName = ({ address, certificate, clientId, device, userName }: PresentedCredentials): string =>
  device === undefined
    ? (userName || certificate?.fingerprint || clientId || address).slice(0, maxNameLength)
    : deviceKey(device)

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const credentialsOf = yield* CredentialCache.make
  const mac = yield* Mac
  const provers = yield* DeviceCredentials
  const certificates = yield* HeldCertificates
  const tolerance = yield* UplinkTolerance
  const { guard, guardSlow } = yield* SignatureGuard

  /** Returns the device if it exists, `refuse` finds nothing wrong, and it is enabled. */
  const admit = <E>(
    { deviceName, productKey }: ProvedDevice,
    found: Option.Option<StoredCredentials>,
    refuse: (stored: StoredCredentials) => E | undefined
  ): Result.Result<DeviceIdentity, DeviceNotFound | DeviceDisabled | E> => {
    if (Option.isNone(found)) return Result.fail(DeviceNotFound.of({ productKey, deviceName }))
    const refusal = refuse(found.value)
    if (refusal !== undefined) return Result.fail(refusal)
    return found.value.enabled
      ? Result.succeed(found.value.identity)
      : Result.fail(new DeviceDisabled({ productKey, deviceName }))
  }

  /** Refuses a device that has no connection of its own. */
  const refuseSubDevice = ({ identity: { deviceName, productKey }, nodeType }: StoredCredentials) =>
    nodeType === "gateway-sub" ? new SubDeviceOnly({ productKey, deviceName }) : undefined

  /** Finds the device, and judges what it presents by what is stored. */
  const check = <E>(
    claimed: Claimed,
    judge: (stored: StoredCredentials) => E | undefined
  ): Effect.Effect<DeviceIdentity, DeviceNotFound | DeviceDisabled | TooManyWrongSignatures | StoreError | E> =>
    guard(
      { name: deviceKey(claimed), address: claimed.address },
      isWrong,
      credentialsOf(claimed.productKey, claimed.deviceName),
      (found) => admit(claimed, found, judge)
    )

  /** Returns the secret that makes what a device presents; undefined: none does. */
  const secretOf = (
    { deviceSecret, previousSecret }: StoredCredentials,
    presented: string,
    expected: (secret: string) => string
  ): string | undefined => {
    const isRight = (secret: string) => equalInConstantTime(expected(secret), presented)
    return rightSecret(deviceSecret, previousSecret, clock.currentTimeMillisUnsafe(), isRight)
  }

  /** Compares what a device presents with what its secrets make. */
  const wrongSignature = (
    { deviceName, productKey }: Claimed,
    stored: StoredCredentials,
    presented: string,
    expected: (secret: string) => string
  ): WrongSignature | undefined =>
    secretOf(stored, presented, expected) === undefined ? new WrongSignature({ productKey, deviceName }) : undefined

  /** What a connecting device presents, and what its secrets make. */
  const signatureOf = (credentials: ConnectCredentials) => {
    const text = connectText(credentials)
    return {
      presented: credentials.signature.toLowerCase(),
      expected: (secret: string) => mac.sign(credentials.signMethod, secret, text)
    }
  }

  /** Judges what a device presents that has a connection of its own. */
  const refuseDirect = (
    claimed: Claimed,
    stored: StoredCredentials,
    presented: string,
    expected: (secret: string) => string
  ): WrongSignature | CertificateRequired | SubDeviceOnly | undefined =>
    stored.authType === "certificate"
      ? new CertificateRequired({ productKey: claimed.productKey, deviceName: claimed.deviceName })
      : wrongSignature(claimed, stored, presented, expected) ?? refuseSubDevice(stored)

  const askProvers = Effect.fnUntraced(function*(presented: PresentedCredentials) {
    for (const prover of provers) {
      const proved = yield* prover(presented)
      if (Option.isNone(proved)) continue
      if (presented.device !== undefined && deviceKey(presented.device) !== deviceKey(proved.value)) {
        return yield* new ProofRefused({ reason: "the proof belongs to another device" })
      }
      const found = yield* credentialsOf(proved.value.productKey, proved.value.deviceName)
      return Option.some(yield* Effect.fromResult(admit(proved.value, found, refuseSubDevice)))
    }
    return Option.none<DeviceIdentity>()
  })

  const authenticateCertificate = Effect.fnUntraced(function*({ device, fingerprint }: PresentedCertificate) {
    const held = yield* certificates.find(fingerprint)
    if (held === undefined) return Option.none<DeviceIdentity>()
    const { deviceName, productKey } = held
    const isOfAnother = device !== undefined && deviceKey(device) !== deviceKey(held)
    const reason = isOfAnother
      ? "the certificate belongs to another device"
      : refusalOf(held, clock.currentTimeMillisUnsafe())
    if (reason !== undefined) return yield* new CertificateRefused({ productKey, deviceName, reason })
    const found = yield* credentialsOf(productKey, deviceName)
    // A device of the same name that was created later does not hold it.
    const isHolder = Option.exists(found, ({ identity }) => identity.deviceId === held.deviceId)
    return isHolder
      ? Option.some(yield* Effect.fromResult(admit(held, found, refuseSubDevice)))
      : Option.none<DeviceIdentity>()
  })

  return DeviceAuthenticator.of({
    authenticateCertificate,
    prove: (presented) =>
      provers.length === 0
        ? Effect.succeedNone
        : guardSlow({ name: suspectName(presented), address: presented.address }, isWrong, askProvers(presented)),
    authenticate: (credentials) => {
      const { expected, presented } = signatureOf(credentials)
      return check(credentials, (stored) => refuseDirect(credentials, stored, presented, expected))
    },
    issueAccessToken: (credentials) => {
      const { expected, presented } = signatureOf(credentials)
      let token = ""
      const admitted = check(credentials, (stored) => {
        const now = clock.currentTimeMillisUnsafe()
        // The token ends with the secret that it stands for.
        const secret = secretOf(stored, presented, expected) ?? ""
        token = makeAccessToken(mac, secret, credentials, now + accessTokenMillis)
        return refuseDirect(credentials, stored, presented, expected) ??
          refuseUnfresh(stored.uplinkSignature, {}, now, tolerance)
      })
      return Effect.map(admitted, () => token)
    },
    admitted: ({ deviceName, productKey }) =>
      Effect.map(
        credentialsOf(productKey, deviceName),
        Option.flatMap(({ enabled, identity }) => enabled ? Option.some(identity) : Option.none())
      ),
    authenticateAccessToken: (credentials) => {
      const { deviceName, productKey } = credentials
      const presented = credentials.token.toLowerCase()
      const end = endOfAccessToken(presented)
      const expected = (secret: string) => makeAccessToken(mac, secret, credentials, end)
      return check(credentials, (stored) => {
        const now = clock.currentTimeMillisUnsafe()
        return refuseDirect(credentials, stored, presented, expected) ??
          refuseUnfresh(stored.uplinkSignature, {}, now, tolerance) ??
          (end <= now ? new AccessTokenExpired({ productKey, deviceName }) : undefined)
      })
    },
    authenticateToken: (credentials) => {
      const text = tokenText(credentials)
      const presented = credentials.token.toLowerCase()
      // Tokens of earlier registrations are the whole code.
      const length = presented.length === tokenLength ? tokenLength : undefined
      const expected = (secret: string) => mac.sign("hmacsha256", secret, text).slice(0, length)
      return check(credentials, (stored) => refuseDirect(credentials, stored, presented, expected))
    },
    authenticateUplink: (credentials) => {
      const text = uplinkText(credentials)
      const expected = (secret: string) => mac.sign(credentials.signMethod, secret, text)
      let isOnce = false
      const admitted = check(
        credentials,
        (stored) => {
          isOnce = stored.uplinkSignature === "timestamped"
          return refuseDirect(credentials, stored, credentials.signature, expected) ??
            refuseUnfresh(stored.uplinkSignature, credentials, clock.currentTimeMillisUnsafe(), tolerance)
        }
      )
      return Effect.map(admitted, (device) => ({ device, isOnce }))
    },
    authenticateSubDevice: (credentials) => {
      const { deviceName, fields, productKey, projectId, signMethod } = credentials
      const { cleanSession, ...rest } = fields
      const presented = credentials.signature.toLowerCase()
      const expected = (secret: string) => {
        const expected = mac.sign(signMethod, secret, fieldsText(rest))
        return cleanSession === undefined || equalInConstantTime(expected, presented)
          ? expected
          : mac.sign(signMethod, secret, fieldsText(fields))
      }
      return check(
        credentials,
        (stored) =>
          stored.identity.projectId === projectId
            ? wrongSignature(credentials, stored, presented, expected)
            : DeviceNotFound.of({ productKey, deviceName })
      )
    }
  })
})
