/**
 * The device methods with which gateways manage their sub-devices
 * (docs/protocol/gateways.md).
 */
import { Clock, Effect, Layer, Option, Result } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { Feed } from "../feed/Feed.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import * as DeviceMethod from "../uplink/DeviceMethod.ts"
import { DeviceMethods } from "../uplink/DeviceMethods.ts"
import {
  belongsToOther,
  deviceDisabled,
  deviceNotFound,
  type DeviceReply,
  failure,
  fieldError,
  gatewayFull,
  noTopology,
  productNotFound,
  success,
  tooManyRequests
} from "../uplink/DeviceReply.ts"
import type { NodeType, Product } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import { DeviceAuthenticator } from "../provisioning/DeviceAuthenticator.ts"
import { Provisioning } from "../provisioning/Provisioning.ts"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import { admits } from "./Topology.ts"
import { timeOfProof } from "./TopologyClaim.ts"
import { announceDetached, attachSubDevices, nameOf, topologyEvents } from "./TopologyChange.ts"
import {
  type ProxiedRegistration,
  readFound,
  readNames,
  readProofs,
  readProxied,
  readRegistered,
  type SubDeviceProof
} from "./TopologyMessage.ts"
import { TopologyStore } from "./TopologyStore.ts"

const forbidden: DeviceReply = failure(403, "request forbidden: the device is no gateway")
const addsItself: DeviceReply = failure(6402, "topo relation cannot add by self")
const registrationOff: DeviceReply = failure(6288, "dynamic registration disabled")
const alreadyActive: DeviceReply = failure(6289, "device already active")
const badSignature: DeviceReply = failure(401, "request auth error")
/** The signature is right and does not count. */
const unfresh = (reason: string): DeviceReply => failure(401, `request auth error: ${reason}`)
const badRegistration: DeviceReply = failure(6600, "sign check failed")

/** A request is refused as a whole, with this reply. */
class Refused {
  readonly _tag = "Refused"
  readonly reply: DeviceReply
  constructor(reply: DeviceReply) {
    this.reply = reply
  }
}

const refuse = (reply: DeviceReply) => Effect.fail(new Refused(reply))

const isSame = (a: SubDeviceName, b: SubDeviceName): boolean =>
  a.productKey === b.productKey && a.deviceName === b.deviceName

const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const devices = yield* DeviceStore
  const products = yield* ProductStore
  const authenticator = yield* DeviceAuthenticator
  const provisioning = yield* Provisioning
  const sessions = yield* DeviceSessions
  const feed = yield* Feed
  const attach = attachSubDevices(store, sessions, feed)

  /** Returns the product of this key in the gateway's project if its devices are of the node type. */
  const productOf = Effect.fnUntraced(
    function*(gateway: DeviceIdentity, productKey: Product["productKey"], nodeType: NodeType) {
      const found = yield* products.get(gateway.projectId, productKey)
      return Option.getOrUndefined(Option.filter(found, (product) => product.nodeType === nodeType))
    }
  )

  /** Returns the sub-devices of these names; refuses the request if one does not belong to the gateway. */
  const own = Effect.fnUntraced(function*(gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) {
    const found = yield* store.attachments(names)
    return yield* Effect.forEach(
      found,
      (attachment) =>
        Option.match(Option.filter(attachment, (each) => each.gateway.deviceId === gateway.deviceId), {
          onNone: () => refuse(noTopology),
          onSome: ({ subDevice }) => Effect.succeed(subDevice)
        })
    )
  })

  const authenticate = (gateway: DeviceIdentity, { fields, sign, signMethod, ...name }: SubDeviceProof) =>
    authenticator.authenticateSubDevice({
      ...name,
      signMethod,
      signature: sign,
      fields,
      projectId: gateway.projectId,
      address: gateway.deviceId
    }).pipe(
      Effect.catchTags({
        DeviceNotFound: () => refuse(deviceNotFound),
        WrongSignature: () => refuse(badSignature),
        DeviceDisabled: () => refuse(deviceDisabled),
        TooManyWrongSignatures: () => refuse(tooManyRequests)
      })
    )

  const add = Effect.fnUntraced(function*(gateway: DeviceIdentity, proofs: ReadonlyArray<SubDeviceProof>) {
    const subDevices: Array<DeviceIdentity> = []
    const provedAt = new Map<DeviceIdentity["deviceId"], number>()
    const now = yield* Clock.currentTimeMillis
    for (const proof of proofs) {
      if (isSame(proof, gateway)) return yield* refuse(addsItself)
      const subDevice = yield* authenticate(gateway, proof)
      const time = timeOfProof(proof, gateway, now)
      if (typeof time === "string") return yield* refuse(unfresh(time))
      if (time !== undefined) provedAt.set(subDevice.deviceId, time)
      if ((yield* productOf(gateway, subDevice.productKey, "gateway-sub")) === undefined) {
        return yield* refuse(fieldError("productKey", `product ${subDevice.productKey} has no sub-devices`))
      }
      if (!subDevices.some(({ deviceId }) => deviceId === subDevice.deviceId)) subDevices.push(subDevice)
    }
    const outcome = yield* attach({ gatewayId: gateway.deviceId, subDevices, by: { _tag: "Gateway", provedAt } })
    switch (outcome._tag) {
      case "Attached":
        return success(subDevices.map(nameOf))
      case "Full":
        return yield* refuse(gatewayFull)
      case "OtherGateway":
        return yield* refuse(belongsToOther)
      case "Spent":
        return yield* refuse(
          unfresh("the proof of a sub-device is too old or was used; sign a new one with a timestamp")
        )
      default:
        return yield* refuse(deviceNotFound)
    }
  })

  const remove = Effect.fnUntraced(function*(gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) {
    const subDevices = yield* own(gateway, names)
    const at = yield* Clock.currentTimeMillis
    const detached = yield* feed.commit(
      store.detach({
        subDeviceIds: subDevices.map(({ deviceId }) => deviceId),
        gatewayId: gateway.deviceId,
        state: "released",
        at
      }),
      topologyEvents("delete", at)
    )
    yield* announceDetached(sessions, detached, true)
    return success(subDevices.map(nameOf))
  })

  /** Records what the gateway has found; in an add-session, tells the gateway at once to add it. */
  const found = Effect.fnUntraced(function*(gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) {
    for (const { productKey } of names) {
      if ((yield* productOf(gateway, productKey, "gateway-sub")) === undefined) return yield* refuse(productNotFound)
    }
    const at = yield* Clock.currentTimeMillis
    const value = { devices: names.map(nameOf) }
    yield* feed.append([{ _tag: "EventReported", device: gateway, at, eventId: "found", time: at, value }])
    const [session] = yield* store.openSessions(gateway.deviceId)
    const wanted = session === undefined ? [] : names.filter(({ productKey }) => admits(session, productKey))
    if (wanted.length > 0) {
      yield* sessions.deliverAnywhere(gateway.deviceId, {
        method: "thing.topo.add.notify",
        params: wanted.map(nameOf)
      })
    }
    return success({})
  })

  /** Returns a sub-device that was created before, if the gateway may have its secret. */
  const registrable = Effect.fnUntraced(function*(gateway: DeviceIdentity, name: SubDeviceName) {
    const product = yield* productOf(gateway, name.productKey, "gateway-sub")
    if (product === undefined) return yield* refuse(productNotFound)
    if (!product.dynamicRegister) return yield* refuse(registrationOff)
    const existing = yield* devices.get(gateway.projectId, name)
    if (Option.isNone(existing)) return yield* refuse(deviceNotFound)
    const { device } = existing.value
    if (!device.enabled) return yield* refuse(deviceDisabled)
    const [attachment] = yield* store.attachmentsOf([device.deviceId])
    if (attachment !== undefined && attachment.gateway.deviceId !== gateway.deviceId) {
      return yield* refuse(belongsToOther)
    }
    // The gateway of an active sub-device may have lost the secret: it gets the secret again.
    if (device.activatedAt !== null && attachment === undefined) return yield* refuse(alreadyActive)
    return { device, isAttached: attachment !== undefined }
  })

  /** Returns the secrets of sub-devices. None is marked as registered before all of them are admitted. */
  const register = Effect.fnUntraced(function*(gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) {
    const subDevices = yield* Effect.forEach(names, (name) => registrable(gateway, name))
    return yield* Effect.forEach(
      subDevices,
      Effect.fnUntraced(function*({ device: { deviceId, deviceName, deviceSecret, productKey }, isAttached }) {
        const claimed = yield* devices.claimByName(productKey, deviceName)
        // Meanwhile it may have been deleted, or have registered elsewhere.
        if (claimed === "none") return yield* refuse(deviceNotFound)
        if (claimed === "active" && !isAttached) return yield* refuse(alreadyActive)
        return { iotId: deviceId, productKey, deviceName, deviceSecret }
      })
    )
  })

  /** Returns the secret of a sub-device that signs with the secret of its product. */
  const registerProxied = Effect.fnUntraced(function*(gateway: DeviceIdentity, request: ProxiedRegistration) {
    const { deviceName, productKey } = request
    if ((yield* productOf(gateway, productKey, "gateway-sub")) === undefined) return yield* refuse(productNotFound)
    const triple = yield* provisioning.registerNamed(request, gateway.deviceId).pipe(
      Effect.catchTags({
        InvalidInput: ({ issues: [{ message, path }] }) => refuse(fieldError(path.join("."), message)),
        ProductNotFound: () => refuse(productNotFound),
        WrongSignature: () => refuse(badRegistration),
        TooManyRegistrations: () => refuse(tooManyRequests),
        TooManyWrongSignatures: () => refuse(tooManyRequests),
        RegistrationOff: () => refuse(registrationOff),
        AlreadyActive: () => refuse(alreadyActive),
        DeviceDisabled: () => refuse(deviceDisabled),
        DeviceNotFound: () => refuse(deviceNotFound)
      })
    )
    const credentials = Option.getOrUndefined(yield* devices.credentials(productKey, deviceName))
    return { iotId: credentials?.identity.deviceId ?? "", productKey, deviceName, deviceSecret: triple.deviceSecret }
  })

  const registerAllProxied = Effect.fnUntraced(
    function*(gateway: DeviceIdentity, registrations: ReadonlyArray<ProxiedRegistration>) {
      const successes: Array<Json> = []
      const failures: Array<Json> = []
      for (const registration of registrations) {
        yield* Effect.matchEffect(registerProxied(gateway, registration), {
          onSuccess: (registered) => Effect.sync(() => successes.push(registered)),
          onFailure: (error) =>
            error._tag === "Refused"
              ? Effect.sync(() => {
                const { code, message } = error.reply
                failures.push({ ...nameOf(registration), code, message })
              })
              : Effect.fail(error)
        })
      }
      return success({ successes, failures })
    }
  )

  /** Runs the request if the device is a gateway; returns the reply that refuses it otherwise. */
  const asGateway = (device: DeviceIdentity, run: Effect.Effect<DeviceReply, Refused | StoreError>) =>
    Effect.flatMap(
      productOf(device, device.productKey, "gateway"),
      (product) => product === undefined ? Effect.succeed(forbidden) : run
    ).pipe(Effect.catchTag("Refused", ({ reply }) => Effect.succeed(reply)))

  const method = <A>(
    name: string,
    read: (params: unknown) => Result.Result<A, DeviceReply>,
    run: (gateway: DeviceIdentity, request: A) => Effect.Effect<DeviceReply, Refused | StoreError>,
    action?: string
  ) =>
    DeviceMethod.request({
      name,
      lane: "gateway",
      ...action === undefined ? {} : { action },
      decode: ({ params }) => read(params),
      handle: (request, { device }) => asGateway(device, run(device, request))
    })

  yield* (yield* DeviceMethods).register([
    method("thing.topo.add", readProofs, add, "PostStarTopo"),
    method("thing.topo.delete", readNames, remove, "PostStarTopo"),
    method(
      "thing.topo.get",
      () => Result.succeed(undefined),
      (gateway) => Effect.map(store.subDevices(gateway.deviceId), (subDevices) => success(subDevices.map(nameOf))),
      "PostStarTopo"
    ),
    method("thing.list.found", readFound, found),
    method(
      "thing.sub.register",
      readRegistered,
      (gateway, names) => Effect.map(register(gateway, names), success)
    ),
    method("thing.sub.unregister", readRegistered, (gateway, names) => Effect.as(remove(gateway, names), success([]))),
    method("thing.proxy.provisioning.product_register", readProxied, registerAllProxied)
  ])
}).pipe(Effect.orDie)

/** Registers the methods. Each request takes effect wholly or not at all, except for proxied registrations. */
export const layer: Layer.Layer<
  never,
  never,
  | DeviceMethods
  | TopologyStore
  | DeviceStore
  | ProductStore
  | DeviceAuthenticator
  | Provisioning
  | DeviceSessions
  | Feed
> = Layer.effectDiscard(make)
