/**
 * Manages which sub-devices reach the cloud through which gateway.
 */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import {
  type DeviceDetail,
  type DeviceId,
  type DeviceIdentity,
  deviceIdentity,
  deviceKey,
  DeviceName,
  DeviceNotFound
} from "../device/Device.ts"
import { DeviceLifecycle } from "../device/DeviceLifecycle.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { EventBus } from "../events/EventBus.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InputIssue, InvalidInput } from "../kernel/InvalidInput.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { ProductKey, type ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import { DeviceAuthenticator, type DeviceDisabled, type WrongSignature } from "../provisioning/DeviceAuthenticator.ts"
import type { TooManyWrongSignatures } from "../provisioning/SignatureGuard.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { SubDeviceDirectory } from "../uplink/SubDeviceDirectory.ts"
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
  sessionMemoryMillis,
  SignedSubDevices,
  SubDeviceNames,
  TooManySubDevices
} from "./Topology.ts"
import { announceDetached, attachSubDevices, tellGateways, topologyHook } from "./TopologyChange.ts"
import { TopologyStore } from "./TopologyStore.ts"

type GatewayFailure = DeviceNotFound | NotAGateway | StoreError

export class Topologies extends Context.Service<Topologies, {
  /**
   * Opens an add-session in place of an open one, and lets the gateway know: at
   * once, or when it connects in time. It ends by itself.
   */
  readonly startAdding: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    draft: AddSessionDraft
  ) => Effect.Effect<string, GatewayFailure | InvalidInput | ProductNotFound | NotASubDevice>
  readonly stopAdding: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<void, GatewayFailure | AddSessionNotFound | AddSessionEnded>
  /** What was added in the session; readable for a day after its end. */
  readonly added: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<ReadonlyArray<DeviceIdentity>, GatewayFailure | AddSessionNotFound>
  /** Adds all or none; those that belong to the gateway already stay. The gateway is told. */
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
  /** Removes all or none. The gateway is told, and their sessions end. */
  readonly remove: (
    projectId: ProjectId,
    gatewayId: DeviceId,
    names: SubDeviceNames
  ) => Effect.Effect<void, GatewayFailure | InvalidInput | NotInTopology | BelongsToOtherGateway>
  /** In the order in which they were added, at most 1,500. */
  readonly subDevices: (
    projectId: ProjectId,
    gatewayId: DeviceId
  ) => Effect.Effect<ReadonlyArray<DeviceIdentity>, GatewayFailure>
  /** How many sub-devices those of the devices have that are gateways and have any. */
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
    | EventBus
    | Identifiers
  > = Layer.effect(Topologies, Effect.suspend(() => make))

  /** The attachments that the uplink looks up. */
  static readonly layerDirectory: Layer.Layer<SubDeviceDirectory, never, TopologyStore> = Layer.effect(
    SubDeviceDirectory,
    TopologyStore
  )
}

const decodeSession = decodeInput(AddSessionDraft)
const decodeSigned = decodeInput(SignedSubDevices)
const decodeNames = decodeInput(SubDeviceNames)

const defaultTimeoutSeconds = 60

/** How often it is looked for add-sessions whose time is over. */
const tickEvery = "1 second"
/** Sessions that are ended at once. */
const tickLimit = 1000

const under = ({ message, path }: InputIssue): InputIssue => ({ path: ["params", ...path], message })

const underParams = <A>(checked: Effect.Effect<A, InvalidInput>): Effect.Effect<A, InvalidInput> =>
  Effect.mapError(
    checked,
    ({ issues: [first, ...rest] }) => new InvalidInput({ issues: [under(first), ...rest.map(under)] })
  )

/** Refuses a list that names a sub-device twice. */
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
  const link = yield* DeviceSessions
  const events = yield* EventBus
  const identifiers = yield* Identifiers

  const lifecycle = yield* DeviceLifecycle
  const attach = attachSubDevices(store, link, events)
  yield* lifecycle.register(topologyHook(store, link, events))

  /** The gateways that may have a session to be told of when they connect. */
  let open: ReadonlySet<DeviceId> = new Set()

  const gateway = Effect.fnUntraced(function*(projectId: ProjectId, gatewayId: DeviceId) {
    const reference = { deviceId: gatewayId }
    const detail = yield* Effect.fromOption(
      yield* devices.get(projectId, reference),
      () => DeviceNotFound.of(reference)
    )
    if (detail.product.nodeType !== "gateway") return yield* new NotAGateway({ deviceId: gatewayId })
    return deviceIdentity(detail)
  })

  const requireSubDevices = Effect.fnUntraced(function*(projectId: ProjectId, productKey: ProductKey) {
    const { nodeType } = yield* products.get(projectId, productKey)
    if (nodeType !== "gateway-sub") return yield* new NotASubDevice({ productKey })
  })

  /** Lets sub-devices of these products join for so many seconds; 0: no more. */
  const permit = (gatewayId: DeviceId, productKeys: ReadonlyArray<ProductKey>, time: number) =>
    Effect.forEach(
      productKeys.length === 0 ? [""] : productKeys,
      (productKey) => link.deliverAnywhere(gatewayId, { method: "thing.gateway.permit", params: { time, productKey } }),
      { discard: true }
    )

  const startAdding = Effect.fn("Topologies.startAdding")(
    function*(projectId: ProjectId, gatewayId: DeviceId, input: AddSessionDraft) {
      const { productKeys = [], timeout = defaultTimeoutSeconds } = yield* underParams(decodeSession(input))
      yield* gateway(projectId, gatewayId)
      const distinctKeys = [...new Set(productKeys)]
      yield* Effect.forEach(distinctKeys, (productKey) => requireSubDevices(projectId, productKey), { discard: true })
      const startedAt = yield* Clock.currentTimeMillis
      const session: AddSession = {
        sessionId: yield* identifiers.deviceId,
        projectId,
        gatewayId,
        productKeys: distinctKeys,
        startedAt,
        endsAt: startedAt + timeout * 1000
      }
      const replaced = yield* store.openSession(session)
      if (Option.isSome(replaced)) {
        const ended = replaced.value.productKeys.filter((productKey) => !distinctKeys.includes(productKey))
        if (ended.length > 0) yield* permit(gatewayId, ended, 0)
      }
      open = new Set(open).add(gatewayId)
      yield* permit(gatewayId, distinctKeys, timeout)
      return session.sessionId
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
      if (!(yield* store.endSession(gatewayId, sessionId, yield* Clock.currentTimeMillis))) {
        return yield* new AddSessionEnded({ sessionId })
      }
      yield* permit(gatewayId, session.productKeys, 0)
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
            address: gatewayId,
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
      const outcome = yield* attach({ gatewayId, subDevices, isMove: false })
      switch (outcome._tag) {
        case "Gone":
          return yield* DeviceNotFound.of({ deviceId: gatewayId })
        case "Full":
          return yield* new TooManySubDevices({ gatewayId })
        case "OtherGateway": {
          const { deviceName, productKey } = subDevices.find(({ deviceId }) => deviceId === outcome.deviceId)!
          return yield* new BelongsToOtherGateway({ device: deviceKey({ productKey, deviceName }) })
        }
        case "Attached":
          yield* tellGateways(link, outcome.attachments, "create")
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
      yield* announceDetached(link, events, yield* store.detach(subDeviceIds, gatewayId))
    }
  )

  const subDevices = Effect.fn("Topologies.subDevices")(function*(projectId: ProjectId, gatewayId: DeviceId) {
    yield* gateway(projectId, gatewayId)
    return yield* store.subDevices(gatewayId)
  })

  /** For as long as its session has left; it may have ended since it was looked at. */
  const permitAgain = Effect.fnUntraced(function*(gatewayId: DeviceId) {
    const [session] = yield* store.openSessions(gatewayId)
    if (session === undefined) return
    const left = Math.ceil((session.endsAt - (yield* Clock.currentTimeMillis)) / 1000)
    if (left > 0) yield* permit(gatewayId, session.productKeys, left)
  }, Effect.catch((error) => Effect.logWarning("A gateway could not be told of its add-session", error)))

  /** Ends sessions whose time is over, and looks which are open. */
  const tick = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const due = yield* store.endDue({ now, limit: tickLimit })
    const before = open
    open = new Set((yield* store.openSessions()).map(({ gatewayId }) => gatewayId))
    // A gateway may have connected here before it was known that there is a session.
    const late = [...open].filter((gatewayId) => !before.has(gatewayId) && link.session(gatewayId) !== undefined)
    yield* Effect.forEach(late, permitAgain, { discard: true })
    yield* Effect.forEach(due, ({ gatewayId, productKeys }) => permit(gatewayId, productKeys, 0), { discard: true })
    yield* store.forgetSessions(now - sessionMemoryMillis)
  })

  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  yield* link.listen({
    attached: ({ connection: { device: { deviceId } } }) => {
      if (open.has(deviceId)) runFork(permitAgain(deviceId))
    }
  })
  yield* tick.pipe(
    Effect.catch((error) => Effect.logWarning("Add-sessions could not be looked after", error)),
    Effect.repeat(Schedule.spaced(tickEvery)),
    Effect.forkScoped
  )

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
    amounts
  })
})
