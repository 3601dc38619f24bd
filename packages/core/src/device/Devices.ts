/**
 * Manages devices.
 */
import { Clock, Context, Effect, Layer, Option, Predicate } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InputIssue, InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import { defaultOverlap, RotationDraft } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import {
  type CloudGatewayAccount,
  type Device,
  DeviceChanges,
  type DeviceDetail,
  DeviceDraft,
  DeviceId,
  deviceIdentity,
  DeviceName,
  type DeviceNamesTaken,
  DeviceNotFound,
  type DeviceReference,
  NotACloudGateway,
  Tags
} from "./Device.ts"
import type { DeviceFilter } from "./DeviceFilter.ts"
import { DeviceLifecycle, type LifecycleChange } from "./DeviceLifecycle.ts"
import { DeviceStore, type DeviceUpdate } from "./DeviceStore.ts"

export class Devices extends Context.Service<Devices, {
  /**
   * Creates an enabled device in status `unactive`, with a new id and secret, and
   * a new name unless the draft has one. Fails with `DeviceNamesTaken` if a device
   * of the product has this name, and with `NotACloudGateway` if the draft has
   * fields that only a cloud-gateway product takes.
   */
  readonly create: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: DeviceDraft
  ) => Effect.Effect<
    Device,
    InvalidInput | ProductNotFound | NotACloudGateway | DeviceNamesTaken | QuotaExceeded | StoreError
  >
  /** Returns the device with its product. */
  readonly get: (
    projectId: ProjectId,
    reference: DeviceReference
  ) => Effect.Effect<DeviceDetail, DeviceNotFound | StoreError>
  /** Returns a page of the devices of the project that `filter` selects. */
  readonly list: (
    projectId: ProjectId,
    filter: DeviceFilter,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceDetail>, InvalidInput | StoreError>
  /** Changes the nickname of the device. */
  readonly change: (
    projectId: ProjectId,
    deviceId: DeviceId,
    changes: DeviceChanges
  ) => Effect.Effect<void, InvalidInput | DeviceNotFound | StoreError>
  /** Allows the device to connect. */
  readonly enable: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Tells the device, ends its connection, and refuses its connections until `enable`. */
  readonly disable: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Marks the device as bound to a user of the application. */
  readonly bind: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /**
   * Marks the device as not bound. Removes its desired values and the bind random
   * that it reported, and detaches it from its gateway.
   */
  readonly unbind: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Sets whether the device shall send its logs. Tells a connected device at once. */
  readonly setDiagnosis: (
    projectId: ProjectId,
    deviceId: DeviceId,
    enabled: boolean
  ) => Effect.Effect<void, DeviceNotFound | StoreError>
  /** Replaces the tags of the device by at most 50. */
  readonly setTags: (
    projectId: ProjectId,
    deviceId: DeviceId,
    tags: Readonly<Record<string, string>>
  ) => Effect.Effect<void, InvalidInput | DeviceNotFound | StoreError>
  /**
   * Gives the device a new secret and returns the device. All nodes accept the
   * secret before for `overlap` seconds more. A connected device stays connected.
   */
  readonly rotateSecret: (
    projectId: ProjectId,
    deviceId: DeviceId,
    draft: RotationDraft
  ) => Effect.Effect<Device, InvalidInput | DeviceNotFound | StoreError>
  /** Removes the device with everything that is stored about it, and ends its connection. */
  readonly remove: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<void, DeviceNotFound | StoreError>
}>()("@device-cloud/core/device/Devices") {
  static readonly layer: Layer.Layer<
    Devices,
    never,
    DeviceStore | DeviceLifecycle | Products | Identifiers | Quotas
  > = Layer
    .effect(Devices, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(DeviceDraft)
const decodeChanges = decodeInput(DeviceChanges)
const decodeTags = decodeInput(Tags)
const decodeRotation = decodeInput(RotationDraft)
const underTags = ({ message, path }: InputIssue): InputIssue => ({ path: ["tags", ...path], message })

/** The fields of a draft that are not empty and that only a cloud-gateway product takes. */
const cloudGatewayFields = (draft: DeviceDraft): ReadonlyArray<string> =>
  (["clientid", "username", "password", "cloudGtwDeviceUuid"] as const).filter((field) => (draft[field] ?? "") !== "")

const make = Effect.gen(function*() {
  const store = yield* DeviceStore
  const products = yield* Products
  const quotas = yield* Quotas
  const lifecycle = yield* DeviceLifecycle
  const identifiers = yield* Identifiers

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
      const createdAt = yield* Clock.currentTimeMillis
      const insert = store.insertMany(projectId, productKey, [{
        deviceId: DeviceId.make(yield* identifiers.deviceId),
        deviceName: DeviceName.make(draft.deviceName ?? (yield* identifiers.deviceName)),
        deviceSecret: yield* identifiers.deviceSecret,
        nickname: draft.nickname ?? "",
        batchId: 0,
        cloudGateway: yield* cloudGatewayAccount(product.dataSource, productKey, draft),
        createdAt
      }])
      const stored = yield* lifecycle.commit(
        projectId,
        quotas.within(projectId, "devices", 1, insert),
        (stored) =>
          Option.isSome(stored)
            ? {
              change: "created",
              devices: stored.value.map((device) => deviceIdentity({ device, product })),
              at: createdAt
            }
            : undefined
      )
      const device = Option.getOrUndefined(stored)?.[0]
      return device ?? (yield* new ProductNotFound({ productKey }))
    }
  )

  /** Nothing has an id that is no text. Storages are not asked: each would make something else of it. */
  const ifText = <E>(reference: DeviceReference, find: () => Effect.Effect<Option.Option<DeviceDetail>, E>) => {
    const ids = "deviceId" in reference ? [reference.deviceId] : [reference.productKey, reference.deviceName]
    return ids.every(Predicate.isString) ? find() : Effect.succeedNone
  }

  const found = (detail: Option.Option<DeviceDetail>, reference: DeviceReference) =>
    Effect.fromOption(detail, () => DeviceNotFound.of(reference))

  // Without a span: this call is frequent and costs little more than its look-up.
  const get = Effect.fnUntraced(function*(projectId: ProjectId, reference: DeviceReference) {
    return yield* found(yield* ifText(reference, () => store.get(projectId, reference)), reference)
  })

  const save = Effect.fnUntraced(
    function*(projectId: ProjectId, deviceId: DeviceId, fields: Omit<DeviceUpdate, "updatedAt">) {
      const updatedAt = yield* Clock.currentTimeMillis
      const update = () => store.update(projectId, deviceId, { ...fields, updatedAt })
      return yield* found(yield* ifText({ deviceId }, update), { deviceId })
    }
  )

  /** Stores a change and calls the lifecycle hooks. */
  const changeAndTell = Effect.fnUntraced(function*(
    projectId: ProjectId,
    deviceId: DeviceId,
    fields: Omit<DeviceUpdate, "updatedAt">,
    kind: LifecycleChange
  ) {
    yield* lifecycle.commit(projectId, save(projectId, deviceId, fields), (detail) => ({
      change: kind,
      devices: [deviceIdentity(detail)],
      at: detail.device.updatedAt
    }))
  })

  const change = Effect.fn("Devices.change")(
    function*(projectId: ProjectId, deviceId: DeviceId, input: DeviceChanges) {
      yield* save(projectId, deviceId, yield* decodeChanges(input))
    }
  )

  const enable = Effect.fn("Devices.enable")((projectId: ProjectId, deviceId: DeviceId) =>
    changeAndTell(projectId, deviceId, { enabled: true }, "enabled")
  )

  const disable = Effect.fn("Devices.disable")((projectId: ProjectId, deviceId: DeviceId) =>
    changeAndTell(projectId, deviceId, { enabled: false }, "disabled")
  )

  const bind = Effect.fn("Devices.bind")((projectId: ProjectId, deviceId: DeviceId) =>
    changeAndTell(projectId, deviceId, { bound: true }, "bound")
  )

  const unbind = Effect.fn("Devices.unbind")((projectId: ProjectId, deviceId: DeviceId) =>
    changeAndTell(projectId, deviceId, { bound: false }, "unbound")
  )

  const setDiagnosis = Effect.fn("Devices.setDiagnosis")(
    (projectId: ProjectId, deviceId: DeviceId, enabled: boolean) =>
      changeAndTell(projectId, deviceId, { diagnosisEnabled: enabled }, "configured")
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

  const rotateSecret = Effect.fn("Devices.rotateSecret")(
    function*(projectId: ProjectId, deviceId: DeviceId, input: RotationDraft) {
      const { overlap = defaultOverlap } = yield* decodeRotation(input)
      const at = yield* Clock.currentTimeMillis
      const secret = yield* identifiers.deviceSecret
      const previousUntil = overlap === 0 ? null : at + overlap * 1000
      const rotated = yield* lifecycle.commit(
        projectId,
        store.rotateSecret(projectId, deviceId, { secret, previousUntil, at }),
        (rotated) =>
          Option.isSome(rotated) ? { change: "rotated", devices: [deviceIdentity(rotated.value)], at } : undefined
      )
      return (yield* found(rotated, { deviceId })).device
    }
  )

  const remove = Effect.fn("Devices.remove")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const identity = deviceIdentity(yield* get(projectId, { deviceId }))
    const removed = yield* lifecycle.remove(
      projectId,
      [identity],
      Effect.map(store.remove(projectId, deviceId), Option.map((detail) => [deviceIdentity(detail)])),
      yield* Clock.currentTimeMillis
    )
    if (Option.isNone(removed)) return yield* DeviceNotFound.of({ deviceId })
  })

  return Devices.of({
    create,
    get,
    list: paged(store.list),
    change,
    enable,
    disable,
    bind,
    unbind,
    setDiagnosis,
    setTags,
    rotateSecret,
    remove
  })
})
