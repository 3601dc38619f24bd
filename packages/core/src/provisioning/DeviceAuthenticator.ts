/**
 * Finds out whether a device is who it says it is.
 */
import { Context, Effect, Layer, Option, Predicate, Schema } from "effect"
import { type DeviceIdentity, type DeviceName, DeviceNotFound } from "../device/Device.ts"
import type { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import type { DeviceStore } from "../device/DeviceStore.ts"
import type { NodeBus } from "../cluster/NodeBus.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import * as CredentialCache from "./CredentialCache.ts"
import { equalInConstantTime, Mac, type SignMethod } from "../kernel/Mac.ts"
import { connectText, fieldsText, tokenText, uplinkText } from "./Signature.ts"
import { SignatureGuard, type TooManyWrongSignatures } from "./SignatureGuard.ts"

/** Which device something comes from, as it says, and from where. */
interface Claimed {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  /** The address that it connects from. */
  readonly address: string
}

/** What a connecting device presents. */
export interface ConnectCredentials extends Claimed {
  /** The identifier that the device chose for itself; it is signed, not trusted. */
  readonly clientId: string
  readonly timestamp?: string | undefined
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly signature: string
}

/** What a device presents that registered without being created beforehand. */
export interface TokenCredentials extends Claimed {
  /** The client id that it was given when it registered. */
  readonly clientId: string
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
  /** Of the gateway; what belongs to another project does not exist for it. */
  readonly projectId: ProjectId
  readonly signMethod: SignMethod
  /** Hex of either case. */
  readonly signature: string
  /** What may have been signed; `cleanSession` is by some devices only. */
  readonly fields: Readonly<Record<string, string>>
}

export class WrongSignature extends Schema.TaggedError<WrongSignature>()("WrongSignature", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

export class DeviceDisabled extends Schema.TaggedError<DeviceDisabled>()("DeviceDisabled", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}

/** What counts against whoever presented it: guesses at names, too. */
const isWrong = Predicate.or(Predicate.isTagged("WrongSignature"), Predicate.isTagged("DeviceNotFound"))

const make = Effect.gen(function*() {
  const credentialsOf = yield* CredentialCache.make
  const mac = yield* Mac
  const { guard } = yield* SignatureGuard

  /** Finds the device, and compares what it presents with what its secret makes. */
  const check = (
    { address, deviceName, productKey, projectId }: Claimed & { readonly projectId?: ProjectId },
    presented: string,
    expected: (deviceSecret: string) => string
  ) =>
    guard(
      { name: `${productKey}/${deviceName}`, address },
      isWrong,
      Effect.flatMap(
        credentialsOf(productKey, deviceName),
        (found): Effect.Effect<DeviceIdentity, DeviceNotFound | WrongSignature | DeviceDisabled> => {
          if (Option.isNone(found)) return Effect.fail(DeviceNotFound.of({ productKey, deviceName }))
          const { deviceSecret, enabled, identity } = found.value
          if (projectId !== undefined && identity.projectId !== projectId) {
            return Effect.fail(DeviceNotFound.of({ productKey, deviceName }))
          }
          if (!equalInConstantTime(expected(deviceSecret), presented)) {
            return Effect.fail(new WrongSignature({ productKey, deviceName }))
          }
          return enabled ? Effect.succeed(identity) : Effect.fail(new DeviceDisabled({ productKey, deviceName }))
        }
      )
    )

  return DeviceAuthenticator.of({
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

type Refused = DeviceNotFound | WrongSignature | DeviceDisabled | TooManyWrongSignatures | StoreError

/** A device that is disabled learns so only with a right signature. */
export class DeviceAuthenticator extends Context.Service<DeviceAuthenticator, {
  readonly authenticate: (credentials: ConnectCredentials) => Effect.Effect<DeviceIdentity, Refused>
  readonly authenticateToken: (credentials: TokenCredentials) => Effect.Effect<DeviceIdentity, Refused>
  readonly authenticateUplink: (credentials: UplinkCredentials) => Effect.Effect<DeviceIdentity, Refused>
  readonly authenticateSubDevice: (credentials: SubDeviceCredentials) => Effect.Effect<DeviceIdentity, Refused>
}>()("@device-cloud/core/provisioning/DeviceAuthenticator") {
  static readonly layer: Layer.Layer<
    DeviceAuthenticator,
    never,
    DeviceStore | DeviceLifecycle | NodeBus | Mac | SignatureGuard
  > = Layer.effect(DeviceAuthenticator, make)
}
