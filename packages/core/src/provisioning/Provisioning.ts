/**
 * Gives devices that know only the secret of their product a triple of their own
 * (docs/protocol/provisioning.md).
 */
import { Clock, Context, Effect, Layer, Option, PartitionedSemaphore, Predicate, Result, Schema } from "effect"
import {
  type Device,
  type DeviceDetail,
  DeviceDisabled,
  DeviceId,
  deviceIdentity,
  DeviceName,
  DeviceNotFound
} from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { ProjectId } from "../project/Project.ts"
import type { QuotaExceeded, TooManyRegistrations } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import { rightSecret } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { isWellFormed, Text } from "../kernel/Text.ts"
import * as TurnsByKey from "../kernel/TurnsByKey.ts"
import { WrongSignature } from "./ProofFailures.ts"
import { equalInConstantTime, Mac, SignMethod } from "../kernel/Mac.ts"
import { generatorText, registerText, tokenLength, tokenText } from "./Signature.ts"
import { SignatureGuard, type TooManyWrongSignatures } from "./SignatureGuard.ts"

type Refused =
  | InvalidInput
  | ProductNotFound
  | WrongSignature
  | TooManyWrongSignatures
  | RegistrationOff
  | AlreadyActive
  | DeviceDisabled
  | TooManyRegistrations
  | StoreError

/**
 * `address` is the network address of the caller. Every member fails with
 * `AlreadyActive` once the device has been active, and with `RegistrationOff` if
 * the product does not admit registration.
 */
export class Provisioning extends Context.Service<Provisioning, {
  /** Assigns the oldest free device that was created before. The same `mac` gets the same triple again. */
  readonly register: (request: Registration, address: string) => Effect.Effect<Triple, Refused | NoDeviceLeft>
  /** Creates a device with this name. The same name gets the same triple again. */
  readonly generate: (request: NamedRegistration, address: string) => Effect.Effect<Triple, Refused | QuotaExceeded>
  /** Returns the triple of a device that was created before, by its name. */
  readonly registerNamed: (
    request: AlinkRegistration,
    address: string
  ) => Effect.Effect<Triple, Refused | DeviceNotFound>
  /**
   * Creates a device as `generate` does, and returns a token with which the
   * device connects in place of a signature.
   */
  readonly registerUnlisted: (request: AlinkRegistration, address: string) => Effect.Effect<
    Pick<Triple, "productKey" | "deviceName"> & { readonly clientId: string; readonly token: string },
    Refused | QuotaExceeded
  >
}>()("@device-cloud/core/provisioning/Provisioning") {
  static readonly layer: Layer.Layer<
    Provisioning,
    never,
    ProductStore | DeviceStore | Mac | Identifiers | DeviceLifecycle | Quotas | SignatureGuard
  > = Layer.effect(Provisioning, Effect.suspend(() => make))
}

/** Text of `minimum` to `maximum` bytes in UTF-8. */
const bytes = (minimum: number, maximum: number) =>
  Schema.String.check(
    Schema.makeFilter((text) => {
      const { length } = new TextEncoder().encode(text)
      return length >= minimum && length <= maximum && isWellFormed(text)
    }, { expected: `text of ${minimum} to ${maximum} bytes` })
  )

/** Any text that can be stored; the product may not exist. */
const productKey = Text(128).pipe(Schema.brand("ProductKey"))

const common = {
  productKey,
  /** 5 to 20 bytes. */
  random: bytes(5, 20),
  signMethod: Schema.Literals(["hmacsha1", "hmacmd5"]),
  /** Hex of either case. */
  sign: Schema.String
}

/** A device asks for a triple that was created before. */
export const Registration = Schema.Struct({
  ...common,
  /** 1 to 128 characters that name the device, best its hardware address. */
  mac: Text(128).check(Schema.isPattern(/\S/u, { expected: "text that is not blank" }))
})
export interface Registration extends Schema.Schema.Type<typeof Registration> {}

/** A device asks for a triple with a name that the device chooses. */
export const NamedRegistration = Schema.Struct({
  ...common,
  deviceName: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9]{6,20}$/u, { expected: "6 to 20 letters and digits" })
  )
})
export interface NamedRegistration extends Schema.Schema.Type<typeof NamedRegistration> {}

/** A public device SDK asks for the secret of its device, or for a new device. */
export const AlinkRegistration = Schema.Struct({
  productKey,
  deviceName: Schema.String.check(
    Schema.isPattern(/^[\w\-@.:]{1,64}$/u, { expected: "1 to 64 letters, digits and - _ @ . :" })
  ),
  random: bytes(1, 64),
  signMethod: SignMethod,
  sign: Schema.String
})
export interface AlinkRegistration extends Schema.Schema.Type<typeof AlinkRegistration> {}

/** The product does not admit registration: its `dynamicRegister` is off. */
export class RegistrationOff extends DomainError<RegistrationOff>()(
  "RegistrationOff",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `Dynamic registration of product ${productKey} is off`
) {}

/** The device has been active: nobody gets its triple any more. */
export class AlreadyActive extends DomainError<AlreadyActive>()(
  "AlreadyActive",
  {
    /** The name or `mac` in the request. */
    device: Schema.String
  },
  ({ device }) => `Device ${device} has been active; its triple is not told again`
) {}

/** Every device of the product that was created before is assigned. */
export class NoDeviceLeft extends DomainError<NoDeviceLeft>()(
  "NoDeviceLeft",
  {
    productKey: Schema.String
  },
  ({ productKey }) =>
    `Product ${productKey} has no device left that was created beforehand and is not registered; create more`
) {}

/** The identity of a device. */
export type Triple = Pick<Device, "productKey" | "deviceName" | "deviceSecret">

const isWrong = Predicate.or(Predicate.isTagged("WrongSignature"), Predicate.isTagged("ProductNotFound"))

const decodeRegistration = decodeInput(Registration)
const decodeNamedRegistration = decodeInput(NamedRegistration)
const decodeAlinkRegistration = decodeInput(AlinkRegistration)

/** Registrations that this process carries out at once. */
const atOnce = 4
/** Those of one project: a place is left for others while its registrations wait behind its other devices. */
const ofProject = 3

const make = Effect.gen(function*() {
  const products = yield* ProductStore
  const devices = yield* DeviceStore
  const mac = yield* Mac
  const identifiers = yield* Identifiers
  const quotas = yield* Quotas
  const lifecycle = yield* DeviceLifecycle
  const { guard } = yield* SignatureGuard
  const clock = yield* Clock.Clock
  const turns = yield* PartitionedSemaphore.make<ProjectId>({ permits: atOnce })
  const inOwnTurn = yield* TurnsByKey.make<ProjectId>(ofProject)

  /** Succeeds if the request is signed with the product's secret and the product admits registration. */
  const admit = (
    request: { readonly productKey: ProductKey; readonly signMethod: SignMethod; readonly sign: string },
    name: string,
    text: string,
    address: string
  ) =>
    guard(
      { name: `product ${request.productKey}`, address },
      isWrong,
      products.find(request.productKey),
      (found): Result.Result<ProjectId, ProductNotFound | WrongSignature | RegistrationOff> => {
        const { productKey } = request
        if (Option.isNone(found)) return Result.fail(new ProductNotFound({ productKey }))
        const { dynamicRegister, previousSecret, productSecret } = found.value
        const sign = request.sign.toLowerCase()
        const isRight = (secret: string) => equalInConstantTime(mac.sign(request.signMethod, secret, text), sign)
        if (rightSecret(productSecret, previousSecret, clock.currentTimeMillisUnsafe(), isRight) === undefined) {
          return Result.fail(new WrongSignature({ productKey, deviceName: name }))
        }
        return dynamicRegister
          ? Result.succeed(found.value.projectId)
          : Result.fail(new RegistrationOff({ productKey }))
      }
    )

  /** Projects take turns; each registration takes several transactions. */
  const inTurn = <A, E, R>(
    projectId: ProjectId,
    { productKey }: { readonly productKey: ProductKey },
    register: Effect.Effect<A, E, R>
  ) =>
    inOwnTurn(projectId)(turns.withPermit(projectId)(Effect.andThen(quotas.register(projectId, productKey), register)))

  /** Returns the triple of an enabled device. */
  const tripleOf = Effect.fnUntraced(function*({ device }: DeviceDetail) {
    const { deviceName, deviceSecret, enabled, productKey } = device
    if (!enabled) return yield* new DeviceDisabled({ productKey, deviceName })
    return { productKey, deviceName, deviceSecret }
  })

  const register = Effect.fn("Provisioning.register")(function*(input: Registration, address: string) {
    const request = yield* decodeRegistration(input)
    const projectId = yield* admit(request, request.mac, registerText(request), address)
    const claimed = yield* inTurn(projectId, request, devices.claimByMac(request.productKey, request.mac))
    if (claimed === "active") return yield* new AlreadyActive({ device: request.mac })
    if (claimed === "none") return yield* new NoDeviceLeft({ productKey: request.productKey })
    return yield* tripleOf(claimed)
  })

  /** Returns the triple of the device of this name; creates the device if it does not exist. */
  const generateNamed = Effect.fnUntraced(function*(
    projectId: ProjectId,
    productKey: ProductKey,
    deviceName: DeviceName
  ) {
    const deviceId = DeviceId.make(yield* identifiers.deviceId)
    const at = yield* Clock.currentTimeMillis
    const create = devices.claimByName(productKey, deviceName, {
      deviceId,
      deviceName,
      deviceSecret: yield* identifiers.deviceSecret,
      nickname: "",
      batchId: 0,
      cloudGateway: null,
      createdAt: at
    })
    const known = yield* devices.claimByName(productKey, deviceName)
    const claimed = known === "none"
      ? yield* lifecycle.commit(
        projectId,
        quotas.within(projectId, "devices", 1, create),
        (claimed) =>
          typeof claimed === "object" && claimed.device.deviceId === deviceId
            ? { change: "created", devices: [deviceIdentity(claimed)], at }
            : undefined
      )
      : known
    if (claimed === "active") return yield* new AlreadyActive({ device: deviceName })
    if (claimed === "none") return yield* new ProductNotFound({ productKey })
    return yield* tripleOf(claimed)
  })

  const generate = Effect.fn("Provisioning.generate")(function*(input: NamedRegistration, address: string) {
    const request = yield* decodeNamedRegistration(input)
    const projectId = yield* admit(request, request.deviceName, generatorText(request), address)
    const deviceName = DeviceName.make(request.deviceName)
    return yield* inTurn(projectId, request, generateNamed(projectId, request.productKey, deviceName))
  })

  const registerNamed = Effect.fn("Provisioning.registerNamed")(function*(input: AlinkRegistration, address: string) {
    const request = yield* decodeAlinkRegistration(input)
    const { productKey } = request
    const deviceName = DeviceName.make(request.deviceName)
    const projectId = yield* admit(request, deviceName, generatorText(request), address)
    const claimed = yield* inTurn(projectId, request, devices.claimByName(productKey, deviceName))
    if (claimed === "active") return yield* new AlreadyActive({ device: deviceName })
    if (claimed === "none") return yield* DeviceNotFound.of({ productKey, deviceName })
    return yield* tripleOf(claimed)
  })

  const registerUnlisted = Effect.fn("Provisioning.registerUnlisted")(
    function*(input: AlinkRegistration, address: string) {
      const request = yield* decodeAlinkRegistration(input)
      const projectId = yield* admit(request, request.deviceName, generatorText(request), address)
      const named = generateNamed(projectId, request.productKey, DeviceName.make(request.deviceName))
      const triple = yield* inTurn(projectId, request, named)
      const clientId = yield* identifiers.deviceId
      const { deviceName, deviceSecret, productKey } = triple
      const token = mac.sign("hmacsha256", deviceSecret, tokenText({ clientId, deviceName, productKey }))
        .slice(0, tokenLength)
      return { productKey, deviceName, clientId, token }
    }
  )

  return Provisioning.of({ register, generate, registerNamed, registerUnlisted })
})
