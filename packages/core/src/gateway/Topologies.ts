/**
 * Manages which sub-devices reach the cloud through which gateway
 * (docs/api/gateways.md).
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import {
  type DeviceDetail,
  type DeviceDisabled,
  type DeviceId,
  type DeviceIdentity,
  deviceIdentity,
  deviceKey,
  DeviceName,
  DeviceNotFound
} from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { Feed } from "../feed/Feed.ts"
import type { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InputIssue, InvalidInput } from "../kernel/InvalidInput.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { ProductKey, type ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import { DeviceAuthenticator } from "../provisioning/DeviceAuthenticator.ts"
import type { WrongSignature } from "../provisioning/ProofFailures.ts"
import type { TooManyWrongSignatures } from "../provisioning/SignatureGuard.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { SubDeviceDirectory } from "../uplink/SubDeviceDirectory.ts"
import * as AddSessions from "./AddSessions.ts"
import {
  type AddSession,
  AddSessionDraft,
  AddSessionEnded,
  AddSessionNotFound,
  admits,
  BelongsToOtherGateway,
  NotAGateway,
  NotASubDevice,
  NotInTopology,
  SignedSubDevices,
  SubDeviceNames,
  TooManySubDevices
} from "./Topology.ts"
import { announceDetached, attachSubDevices, notifyGateways, topologyEvents, topologyHooks } from "./TopologyChange.ts"
import { TopologyStore } from "./TopologyStore.ts"

type GatewayFailure = DeviceNotFound | NotAGateway | StoreError

export class Topologies extends Context.Service<Topologies, {
  /**
   * Opens an add-session of 1 to 3,600 seconds, default 60, in place of an open
   * one, and returns its id. Tells the gateway: at once, or when it connects
   * while the session is open.
   */
  readonly startAdding: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    draft: AddSessionDraft
  ) => Effect.Effect<string, GatewayFailure | InvalidInput | ProductNotFound | NotASubDevice>
  /** Ends an open add-session early and tells the gateway. */
  readonly stopAdding: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<void, GatewayFailure | AddSessionNotFound | AddSessionEnded>
  /** Returns the sub-devices that were added in the session, until a day after its end. */
  readonly added: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<ReadonlyArray<DeviceIdentity>, GatewayFailure | AddSessionNotFound>
  /**
   * Adds 1 to 1,500 signed sub-devices in an open add-session, all or none, tells
   * the gateway, and returns them. Sub-devices that belong to the gateway already
   * stay as they are. Fails with `NotASubDevice` for a product of another node type.
   */
  readonly add: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    sessionId: string,
    subDevices: SignedSubDevices
  ) => Effect.Effect<
    ReadonlyArray<DeviceIdentity>,
    | GatewayFailure
    | InvalidInput
    | AddSessionNotFound
    | AddSessionEnded
    | WrongSignature
    | DeviceDisabled
    | TooManyWrongSignatures
    | ProductNotFound
    | NotASubDevice
    | BelongsToOtherGateway
    | TooManySubDevices
  >
  /** Removes 1 to 1,500 sub-devices, all or none, ends their sessions and tells the gateway. */
  readonly remove: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    names: SubDeviceNames
  ) => Effect.Effect<void, GatewayFailure | InvalidInput | NotInTopology | BelongsToOtherGateway>
  /** Returns the sub-devices of a gateway in the order in which they were added, at most 1,500. */
  readonly subDevices: (
    projectId: ProjectId,
    gatewayId: DeviceId
  ) => Effect.Effect<ReadonlyArray<DeviceIdentity>, GatewayFailure>
  /** Returns the gateway that the device belongs to; undefined: it belongs to none. */
  readonly gatewayOf: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<DeviceIdentity | undefined, DeviceNotFound | StoreError>
  /** Returns the add-session of the gateway that is open; undefined: none is. */
  readonly openSession: (
    projectId: ProjectId,
    gatewayId: DeviceId
  ) => Effect.Effect<AddSession | undefined, GatewayFailure>
  /** Counts the sub-devices of each of the devices that is a gateway; one without sub-devices is left out. */
  readonly amounts: (details: ReadonlyArray<DeviceDetail>) => Effect.Effect<ReadonlyMap<DeviceId, number>, StoreError>
}>()("@device-cloud/core/gateway/Topologies") {
  static readonly layer: Layer.Layer<
    Topologies,
    never,
    | TopologyStore
    | DeviceLifecycle
    | DeviceStore
    | Products
    | DeviceAuthenticator
    | DeviceSessions
    | Feed
    | Identifiers
  > = Layer.effect(Topologies, Effect.suspend(() => make))

  /** The directory in which the uplink looks up sub-devices: the store itself. */
  static readonly layerDirectory: Layer.Layer<SubDeviceDirectory, never, TopologyStore> = Layer.effect(
    SubDeviceDirectory,
    TopologyStore
  )
}

const decodeSession = decodeInput(AddSessionDraft)
const decodeSigned = decodeInput(SignedSubDevices)
const decodeNames = decodeInput(SubDeviceNames)

/** How long an add-session is open by default. */
const defaultTimeoutSeconds = 60

/** The issue, with its path below `params`. */
const under = ({ message, path }: InputIssue): InputIssue => ({ path: ["params", ...path], message })

const underParams = <A>(checked: Effect.Effect<A, InvalidInput>): Effect.Effect<A, InvalidInput> =>
  Effect.mapError(
    checked,
    ({ issues: [first, ...rest] }) => new InvalidInput({ issues: [under(first), ...rest.map(under)] })
  )

/** Fails with `InvalidInput` if the list names a sub-device twice. */
const distinct = <A extends { readonly productKey: string; readonly deviceName: string }>(items: ReadonlyArray<A>) => {
  const seen = new Set<string>()
  const [first, ...rest] = items.flatMap(({ deviceName, productKey }, i): ReadonlyArray<InputIssue> => {
    const name = deviceKey({ productKey, deviceName })
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    return [{ path: ["params", i, "device_name"], message: "Expected each sub-device once" }]
  })
  return first === undefined ? Effect.void : Effect.fail(new InvalidInput({ issues: [first, ...rest] }))
}

const noAmounts: Effect.Effect<ReadonlyMap<DeviceId, number>> = Effect.succeed(new Map())

const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const devices = yield* DeviceStore
  const products = yield* Products
  const authenticator = yield* DeviceAuthenticator
  const sessions = yield* DeviceSessions
  const feed = yield* Feed
  const lifecycle = yield* DeviceLifecycle
  const attach = attachSubDevices(store, sessions, feed)
  const addSessions = yield* AddSessions.make
  yield* Effect.forEach(topologyHooks(store, sessions, feed), lifecycle.register, { discard: true })

  const deviceOf = Effect.fnUntraced(function*(projectId: ProjectId, deviceId: DeviceId) {
    const reference = { deviceId }
    return yield* Effect.fromOption(yield* devices.get(projectId, reference), () => DeviceNotFound.of(reference))
  })

  /** Returns the device if it is a gateway. */
  const gateway = Effect.fnUntraced(function*(projectId: ProjectId, gatewayId: DeviceId) {
    const detail = yield* deviceOf(projectId, gatewayId)
    if (detail.product.nodeType !== "gateway") return yield* new NotAGateway({ deviceId: gatewayId })
    return deviceIdentity(detail)
  })

  /** Fails if devices of the product are no sub-devices. */
  const requireSubDevices = Effect.fnUntraced(function*(projectId: ProjectId, productKey: ProductKey) {
    const { nodeType } = yield* products.get(projectId, productKey)
    if (nodeType !== "gateway-sub") return yield* new NotASubDevice({ productKey })
  })

  const startAdding = Effect.fn("Topologies.startAdding")(
    function*(projectId: ProjectId, gatewayId: DeviceId, input: AddSessionDraft) {
      const { productKeys = [], timeout: wanted } = yield* underParams(decodeSession(input))
      const timeout = wanted || defaultTimeoutSeconds
      yield* gateway(projectId, gatewayId)
      const distinctKeys = [...new Set(productKeys)]
      yield* Effect.forEach(distinctKeys, (productKey) => requireSubDevices(projectId, productKey), { discard: true })
      return yield* addSessions.open({ projectId, gatewayId, productKeys: distinctKeys, timeout })
    }
  )

  const sessionOf = Effect.fnUntraced(function*(projectId: ProjectId, gatewayId: DeviceId, sessionId: string) {
    yield* gateway(projectId, gatewayId)
    const found = yield* store.session(gatewayId, sessionId)
    return yield* Effect.fromOption(found, () => new AddSessionNotFound({ gatewayId, sessionId }))
  })

  const stopAdding = Effect.fn("Topologies.stopAdding")(
    function*(projectId: ProjectId, gatewayId: DeviceId, sessionId: string) {
      const { session } = yield* sessionOf(projectId, gatewayId, sessionId)
      if (!(yield* addSessions.close(session))) return yield* new AddSessionEnded({ sessionId })
    }
  )

  const added = Effect.fn("Topologies.added")(
    function*(projectId: ProjectId, gatewayId: DeviceId, sessionId: string) {
      return (yield* sessionOf(projectId, gatewayId, sessionId)).members
    }
  )

  const add = Effect.fn("Topologies.add")(
    function*(projectId: ProjectId, gatewayId: DeviceId, sessionId: string, input: SignedSubDevices) {
      const items = yield* underParams(decodeSigned(input))
      yield* distinct(items)
      const { isOpen, session } = yield* sessionOf(projectId, gatewayId, sessionId)
      if (!isOpen) return yield* new AddSessionEnded({ sessionId })
      const [foreign, ...alsoForeign] = items.flatMap(({ productKey }, i) =>
        admits(session, ProductKey.make(productKey))
          ? []
          : [{ path: ["params", i, "product_key"], message: "Expected one of the product keys of the add-session" }]
      )
      if (foreign !== undefined) return yield* new InvalidInput({ issues: [foreign, ...alsoForeign] })
      const subDevices = yield* Effect.forEach(
        items,
        ({ deviceName, productKey, sign, signMethod }) =>
          authenticator.authenticateSubDevice({
            productKey: ProductKey.make(productKey),
            deviceName: DeviceName.make(deviceName),
            projectId,
            // Apart from what the gateway itself presents.
            address: `api ${gatewayId}`,
            signMethod,
            signature: sign,
            fields: { deviceName, productKey }
          }),
        { concurrency: 16 }
      )
      yield* Effect.forEach(
        new Set(subDevices.map(({ productKey }) => productKey)),
        (productKey) => requireSubDevices(projectId, productKey),
        { discard: true }
      )
      const outcome = yield* attach({ gatewayId, subDevices, by: { _tag: "Cloud" } })
      switch (outcome._tag) {
        case "Gone":
          return yield* DeviceNotFound.of({ deviceId: gatewayId })
        case "Full":
          return yield* new TooManySubDevices({ gatewayId })
        case "OtherGateway":
        case "Spent": {
          const { deviceName, productKey } = subDevices.find(({ deviceId }) => deviceId === outcome.deviceId)!
          return yield* new BelongsToOtherGateway({ device: deviceKey({ productKey, deviceName }) })
        }
        case "Attached":
          yield* notifyGateways(sessions, outcome.attachments, "create")
          return subDevices
      }
    }
  )

  const remove = Effect.fn("Topologies.remove")(
    function*(projectId: ProjectId, gatewayId: DeviceId, input: SubDeviceNames) {
      const items = yield* underParams(decodeNames(input))
      yield* gateway(projectId, gatewayId)
      const names = items.map(({ deviceName, productKey }) => ({
        deviceName: DeviceName.make(deviceName),
        productKey: ProductKey.make(productKey)
      }))
      const found = yield* store.attachments(names)
      const subDeviceIds = yield* Effect.forEach(found, (
        attachment,
        i
      ): Effect.Effect<DeviceId, NotInTopology | BelongsToOtherGateway> => {
        const { deviceName, productKey } = names[i]!
        const device = deviceKey({ productKey, deviceName })
        const own = Option.getOrUndefined(attachment)
        if (own?.subDevice.projectId !== projectId) return new NotInTopology({ gatewayId, device })
        return own.gateway.deviceId === gatewayId
          ? Effect.succeed(own.subDevice.deviceId)
          : new BelongsToOtherGateway({ device })
      })
      const at = yield* Clock.currentTimeMillis
      const detached = yield* feed.commit(
        Effect.gen(function*() {
          const detached = yield* store.detach({ subDeviceIds, gatewayId, state: "closed", at })
          const ended = new Set(detached.map(({ subDevice }) => subDevice.deviceId))
          const missed = subDeviceIds.findIndex((deviceId) => !ended.has(deviceId))
          // Somebody else has just removed it.
          if (missed >= 0) return yield* new NotInTopology({ gatewayId, device: deviceKey(names[missed]!) })
          return detached
        }),
        topologyEvents("delete", at)
      )
      yield* announceDetached(sessions, detached)
    }
  )

  const subDevices = Effect.fn("Topologies.subDevices")(function*(projectId: ProjectId, gatewayId: DeviceId) {
    yield* gateway(projectId, gatewayId)
    return yield* store.subDevices(gatewayId)
  })

  const gatewayOf = Effect.fn("Topologies.gatewayOf")(function*(projectId: ProjectId, deviceId: DeviceId) {
    yield* deviceOf(projectId, deviceId)
    const [attachment] = yield* store.attachmentsOf([deviceId])
    return attachment?.gateway
  })

  const openSession = Effect.fn("Topologies.openSession")(function*(projectId: ProjectId, gatewayId: DeviceId) {
    yield* gateway(projectId, gatewayId)
    const [session] = yield* store.openSessions(gatewayId)
    // It is ended in its turn.
    return session === undefined || session.endsAt <= (yield* Clock.currentTimeMillis) ? undefined : session
  })

  const amounts = (details: ReadonlyArray<DeviceDetail>) => {
    const gatewayIds = details.flatMap(({ device, product }) => product.nodeType === "gateway" ? [device.deviceId] : [])
    return gatewayIds.length === 0 ? noAmounts : store.amounts(gatewayIds)
  }

  return Topologies.of({
    startAdding,
    stopAdding,
    added,
    add,
    remove,
    subDevices,
    gatewayOf,
    openSession,
    amounts
  })
})
