/**
 * Finds out whether a device is who it says it is.
 */
import { Context, Effect, Layer, Option, Predicate, Schema } from "effect"
import type { NodeBus } from "../cluster/NodeBus.ts"
import { type DeviceIdentity, deviceKey, DeviceNotFound, type StoredCredentials } from "../device/Device.ts"
import type { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DeviceStore } from "../device/DeviceStore.ts"
import { equalInConstantTime, Mac, type SignMethod } from "../kernel/Mac.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import * as CredentialCache from "./CredentialCache.ts"
import { DeviceCredentials, type PresentedCredentials, ProofRefused, type ProvedDevice } from "./DeviceCredentials.ts"
import { connectText, fieldsText, tokenText, uplinkText } from "./Signature.ts"
import { SignatureGuard, type TooManyWrongSignatures } from "./SignatureGuard.ts"

/**
 * Checks what devices present. Every check fails with `DeviceNotFound` for an
 * unknown device, with `DeviceDisabled` for a disabled one whose proof is right,
 * with `TooManyWrongSignatures` when the device or its address has failed too
 * often, and with `StoreError` when the device cannot be looked up.
 */
export class DeviceAuthenticator extends Context.Service<DeviceAuthenticator, {
  /**
   * Asks the application's provers (`DeviceCredentials`). Returns none if none of
   * them takes the proof: the device then needs a signature or a token of ours.
   */
  readonly prove: (
    presented: PresentedCredentials
  ) => Effect.Effect<Option.Option<DeviceIdentity>, Exclude<Refused, WrongSignature> | ProofRefused>
  /** Checks the signature of a device that connects. */
  readonly authenticate: (credentials: ConnectCredentials) => Effect.Effect<DeviceIdentity, Refused>
  /** Checks the token of a device that registered without being created beforehand. */
  readonly authenticateToken: (credentials: TokenCredentials) => Effect.Effect<DeviceIdentity, Refused>
  /** Checks the signature of a message over HTTP. */
  readonly authenticateUplink: (credentials: UplinkCredentials) => Effect.Effect<DeviceIdentity, Refused>
  /** Checks the signature of a sub-device that logs in through its gateway. */
  readonly authenticateSubDevice: (credentials: SubDeviceCredentials) => Effect.Effect<DeviceIdentity, Refused>
}>()("@device-cloud/core/provisioning/DeviceAuthenticator") {
  static readonly layer: Layer.Layer<
    DeviceAuthenticator,
    never,
    DeviceStore | DeviceLifecycle | NodeBus | Mac | SignatureGuard
  > = Layer.effect(DeviceAuthenticator, Effect.suspend(() => make))
}

type Refused = DeviceNotFound | WrongSignature | DeviceDisabled | TooManyWrongSignatures | StoreError

/** The device that a message comes from, as it says, and its address. */
interface Claimed extends ProvedDevice {
  /** The address that it connects from. */
  readonly address: string
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

/** What a device presents with a message over HTTP. */
export interface UplinkCredentials extends Claimed {
  readonly random: string
  readonly signMethod: SignMethod
  /** Lower-case hex. */
  readonly signature: string
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

/** The signature or token does not belong to the device. */
export class WrongSignature extends Schema.TaggedError<WrongSignature>()("WrongSignature", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

/** The device is disabled. Only a device with a right proof learns this. */
export class DeviceDisabled extends Schema.TaggedError<DeviceDisabled>()("DeviceDisabled", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

/** Failures that count against the device and its address. Guesses at names count, too. */
const isWrong = Predicate.or(
  Predicate.isTagged("WrongSignature"),
  Predicate.or(Predicate.isTagged("DeviceNotFound"), Predicate.isTagged("ProofRefused"))
)

/** Characters of a name under which failures are counted. */
const maxNameLength = 256

/** The name under which a failed proof is counted: nobody shares it by accident. */
const suspectName = ({ address, certificate, clientId, device, userName }: PresentedCredentials): string =>
  device === undefined
    ? (userName || certificate?.fingerprint || clientId || address).slice(0, maxNameLength)
    : deviceKey(device)

const make = Effect.gen(function*() {
  const credentialsOf = yield* CredentialCache.make
  const mac = yield* Mac
  const provers = yield* DeviceCredentials
  const { guard } = yield* SignatureGuard

  /** Returns the device if it exists, `refuse` finds nothing wrong, and it is enabled. */
  const admit = <E>(
    { deviceName, productKey }: ProvedDevice,
    refuse: (stored: StoredCredentials) => E | undefined
  ): Effect.Effect<DeviceIdentity, DeviceNotFound | DeviceDisabled | StoreError | E> =>
    Effect.flatMap(
      credentialsOf(productKey, deviceName),
      (found): Effect.Effect<DeviceIdentity, DeviceNotFound | DeviceDisabled | E> => {
        if (Option.isNone(found)) return Effect.fail(DeviceNotFound.of({ productKey, deviceName }))
        const refusal = refuse(found.value)
        if (refusal !== undefined) return Effect.fail(refusal)
        return found.value.enabled
          ? Effect.succeed(found.value.identity)
          : Effect.fail(new DeviceDisabled({ productKey, deviceName }))
      }
    )

  /** Finds the device, and compares what it presents with what its secret makes. */
  const check = (
    claimed: Claimed & { readonly projectId?: ProjectId },
    presented: string,
    expected: (deviceSecret: string) => string
  ) =>
    guard(
      { name: deviceKey(claimed), address: claimed.address },
      isWrong,
      admit(claimed, ({ deviceSecret, identity }): DeviceNotFound | WrongSignature | undefined => {
        const { deviceName, productKey, projectId } = claimed
        if (projectId !== undefined && identity.projectId !== projectId) {
          return DeviceNotFound.of({ productKey, deviceName })
        }
        return equalInConstantTime(expected(deviceSecret), presented)
          ? undefined
          : new WrongSignature({ productKey, deviceName })
      })
    )

  const askProvers = Effect.fnUntraced(function*(presented: PresentedCredentials) {
    for (const prover of provers) {
      const proved = yield* prover(presented)
      if (Option.isNone(proved)) continue
      if (presented.device !== undefined && deviceKey(presented.device) !== deviceKey(proved.value)) {
        return yield* new ProofRefused({ reason: "the proof belongs to another device" })
      }
      return Option.some(yield* admit<never>(proved.value, () => undefined))
    }
    return Option.none<DeviceIdentity>()
  })

  return DeviceAuthenticator.of({
    prove: (presented) =>
      provers.length === 0
        ? Effect.succeedNone
        : guard({ name: suspectName(presented), address: presented.address }, isWrong, askProvers(presented)),
    authenticate: (credentials) =>
      check(
        credentials,
        credentials.signature.toLowerCase(),
        (secret) => mac.sign(credentials.signMethod, secret, connectText(credentials))
      ),
    authenticateToken: (credentials) =>
      check(
        credentials,
        credentials.token.toLowerCase(),
        (secret) => mac.sign("hmacsha256", secret, tokenText(credentials))
      ),
    authenticateUplink: (credentials) =>
      check(
        credentials,
        credentials.signature,
        (secret) => mac.sign(credentials.signMethod, secret, uplinkText(credentials))
      ),
    authenticateSubDevice: (credentials) => {
      const { fields, signMethod } = credentials
      const { cleanSession, ...rest } = fields
      const presented = credentials.signature.toLowerCase()
      return check(credentials, presented, (secret) => {
        const expected = mac.sign(signMethod, secret, fieldsText(rest))
        return cleanSession === undefined || equalInConstantTime(expected, presented)
          ? expected
          : mac.sign(signMethod, secret, fieldsText(fields))
      })
    }
  })
})
