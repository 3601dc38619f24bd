/**
 * Manages devices.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { unbound } from "../provisioning/Binding.ts"
import { BindingStore } from "../provisioning/BindingStore.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { EventBus } from "../events/EventBus.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InputIssue, InvalidInput } from "../kernel/InvalidInput.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { endUpgrades } from "../ota/device/EndOfDevice.ts"
import { OtaStore } from "../ota/task/OtaStore.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import { clearDesired } from "../shadow/Shadow.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { announceDetached, publishTopology, tellGateways } from "../gateway/TopologyChange.ts"
import { TopologyStore } from "../gateway/TopologyStore.ts"
import {
  type CloudGatewayAccount,
  type Device,
  type DeviceDetail,
  DeviceDraft,
  type DeviceFilter,
  DeviceId,
  deviceIdentity,
  DeviceName,
  DeviceNotFound,
  type DeviceReference,
  logSwitch,
  NotACloudGateway,
  Tags
} from "./Device.ts"
import { type DeviceChange, DeviceStore } from "./DeviceStore.ts"

const decodeDraft = decodeInput(DeviceDraft)
const decodeTags = decodeInput(Tags)
const underTags = ({ message, path }: InputIssue): InputIssue => ({ path: ["tags", ...path], message })

/** The fields of a draft that only a cloud-gateway product takes, those that are not empty. */
const cloudGatewayFields = (draft: DeviceDraft): ReadonlyArray<string> =>
  (["clientid", "username", "password", "cloudGtwDeviceUuid"] as const).filter((field) => (draft[field] ?? "") !== "")

const make = Effect.gen(function*() {
  const store = yield* DeviceStore
  const shadows = yield* ShadowStore
  const bindings = yield* BindingStore
  const upgrades = yield* OtaStore
  const topology = yield* TopologyStore
  const products = yield* Products
  const link = yield* DeviceSessions
  const events = yield* EventBus
  const identifiers = yield* Identifiers

  const publish = (detail: DeviceDetail, action: (DomainEvent & { _tag: "DeviceLifecycle" })["action"]) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (at) => events.publish([{ _tag: "DeviceLifecycle", device: deviceIdentity(detail), at, action }])
    )

  const cloudGatewayAccount = Effect.fnUntraced(
    function*(dataSource: number, productKey: ProductKey, draft: DeviceDraft) {
      const [first, ...rest] = cloudGatewayFields(draft)
      if (dataSource !== 3) {
        return first === undefined ? null : yield* new NotACloudGateway({ productKey, fields: [first, ...rest] })
      }
      const { clientid = "", username = "" } = draft
      const [missing, ...alsoMissing] = Object.entries({ clientid, username }).flatMap(([field, value]) =>
        value === "" ? [{ path: [field], message: "Expected text: a device of a cloud gateway needs it" }] : []
      )
      if (missing !== undefined) return yield* new InvalidInput({ issues: [missing, ...alsoMissing] })
      const account: CloudGatewayAccount = {
        clientId: clientid,
        username,
        password: draft.password ?? "",
        deviceUuid: draft.cloudGtwDeviceUuid ?? ""
      }
      return account
    }
  )

  const create = Effect.fn("Devices.create")(
    function*(projectId: ProjectId, productKey: ProductKey, input: DeviceDraft) {
      const draft = yield* decodeDraft(input)
      const product = yield* products.get(projectId, productKey)
      const stored = yield* store.insertMany(projectId, productKey, [{
        deviceId: DeviceId.make(yield* identifiers.deviceId),
        deviceName: DeviceName.make(yield* identifiers.deviceName),
        deviceSecret: yield* identifiers.deviceSecret,
        nickname: draft.nickname ?? "",
        batchId: 0,
        cloudGateway: yield* cloudGatewayAccount(product.dataSource, productKey, draft),
        createdAt: yield* Clock.currentTimeMillis
      }])
      const device = Option.getOrUndefined(stored)?.[0]
      if (device === undefined) return yield* new ProductNotFound({ productKey })
      yield* publish({ device, product }, "create")
      return device
    }
  )

  const found = (detail: Option.Option<DeviceDetail>, reference: DeviceReference) =>
    Effect.fromOption(detail, () => DeviceNotFound.of(reference))

  // Without a span: what is read most often costs little more than its look-up.
  const get = Effect.fnUntraced(function*(projectId: ProjectId, reference: DeviceReference) {
    return yield* found(yield* store.get(projectId, reference), reference)
  })

  const change = Effect.fnUntraced(
    function*(projectId: ProjectId, deviceId: DeviceId, fields: Omit<DeviceChange, "updatedAt">) {
      const updatedAt = yield* Clock.currentTimeMillis
      return yield* found(yield* store.update(projectId, deviceId, { ...fields, updatedAt }), { deviceId })
    }
  )

  /** Tells the gateway of a sub-device what has become of it. */
  const tellGateway = (deviceId: DeviceId, what: "enable" | "disable") =>
    Effect.flatMap(topology.attachmentsOf([deviceId]), (attachments) => tellGateways(link, attachments, what))

  const enable = Effect.fn("Devices.enable")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const detail = yield* change(projectId, deviceId, { enabled: true })
    yield* tellGateway(deviceId, "enable")
    yield* publish(detail, "enable")
  })

  const disable = Effect.fn("Devices.disable")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const detail = yield* change(projectId, deviceId, { enabled: false })
    yield* link.cutOff([deviceId], "disabled", "thing.disable")
    yield* tellGateway(deviceId, "disable")
    yield* publish(detail, "disable")
  })

  const bind = Effect.fn("Devices.bind")(function*(projectId: ProjectId, deviceId: DeviceId) {
    yield* publish(yield* change(projectId, deviceId, { bound: true }), "bind")
  })

  const unbind = Effect.fn("Devices.unbind")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const detail = yield* change(projectId, deviceId, { bound: false })
    yield* shadows.modify([{
      deviceId,
      modify: (shadow) => [undefined, clearDesired(shadow, detail.device.updatedAt)]
    }])
    yield* announceDetached(link, events, yield* topology.detach([deviceId]))
    yield* bindings.modify(deviceId, () => unbound)
    yield* publish(detail, "unbind")
  })

  const setDiagnosis = Effect.fn("Devices.setDiagnosis")(
    function*(projectId: ProjectId, deviceId: DeviceId, enabled: boolean) {
      const { device } = yield* change(projectId, deviceId, { diagnosisEnabled: enabled })
      yield* link.deliverAnywhere(deviceId, { method: "thing.config.log.push", params: logSwitch(device) })
    }
  )

  const setTags = Effect.fn("Devices.setTags")(
    function*(projectId: ProjectId, deviceId: DeviceId, input: Readonly<Record<string, string>>) {
      const set = yield* Effect.mapError(
        decodeTags(input),
        ({ issues: [first, ...rest] }) => new InvalidInput({ issues: [underTags(first), ...rest.map(underTags)] })
      )
      yield* get(projectId, { deviceId })
      yield* store.changeTags(deviceId, { set, remove: "all" })
    }
  )

  const remove = Effect.fn("Devices.remove")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const attachments = yield* topology.attachmentsOf([deviceId])
    const subDevices = yield* topology.subDevices(deviceId)
    const detail = yield* found(yield* store.remove(projectId, deviceId), { deviceId })
    yield* link.cutOff([deviceId], "deleted", "thing.delete")
    yield* tellGateways(link, attachments, "delete")
    const gateway = deviceIdentity(detail)
    yield* publishTopology(
      events,
      [...attachments, ...subDevices.map((subDevice) => ({ gateway, subDevice }))],
      "delete"
    )
    yield* endUpgrades(upgrades, [deviceId])
    yield* publish(detail, "delete")
  })

  return Devices.of({ create, get, list: store.list, enable, disable, bind, unbind, setDiagnosis, setTags, remove })
})

export class Devices extends Context.Service<Devices, {
  /** Creates an enabled device in status `unactive`, with a new triple. */
  readonly create: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: DeviceDraft
  ) => Effect.Effect<Device, InvalidInput | ProductNotFound | NotACloudGateway | StoreError>
  readonly get: (
    projectId: ProjectId,
    reference: DeviceReference
  ) => Effect.Effect<DeviceDetail, DeviceNotFound | StoreError>
  readonly list: (
    projectId: ProjectId,
    filter: DeviceFilter,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceDetail>, StoreError>
  readonly enable: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** The device is told, its connection ends, and it cannot connect until it is enabled. */
  readonly disable: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  readonly bind: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Also forgets what is desired of the device and the random that it reported, and detaches it from its gateway. */
  readonly unbind: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Asks the device for its logs, or asks for them no more; a connected device learns so at once. */
  readonly setDiagnosis: (
    projectId: ProjectId,
    deviceId: DeviceId,
    enabled: boolean
  ) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Replaces its tags, at most 50. */
  readonly setTags: (
    projectId: ProjectId,
    deviceId: DeviceId,
    tags: Readonly<Record<string, string>>
  ) => Effect.Effect<void, InvalidInput | DeviceNotFound | StoreError>
  /** Its connection ends; its shadow goes with it. */
  readonly remove: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
}>()("@device-cloud/core/device/Devices") {
  static readonly layer: Layer.Layer<
    Devices,
    never,
    | DeviceStore
    | ShadowStore
    | BindingStore
    | OtaStore
    | TopologyStore
    | Products
    | DeviceSessions
    | EventBus
    | Identifiers
  > = Layer.effect(Devices, make)
}
