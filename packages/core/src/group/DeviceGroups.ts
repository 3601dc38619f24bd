/**
 * Manages groups of devices.
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { type DeviceDetail, type DeviceId, DeviceNotFound, unknownDevices } from "../device/Device.ts"
import { type DeviceFilter, matchesFilter } from "../device/DeviceFilter.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { Text } from "../kernel/Text.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import {
  type DeviceGroup,
  DeviceGroupChanges,
  DeviceGroupDraft,
  DeviceGroupFull,
  DeviceGroupKindMismatch,
  DeviceGroupNameTaken,
  DeviceGroupNotFound,
  maxGroupAddition
} from "./DeviceGroup.ts"
import { DeviceGroupStore } from "./DeviceGroupStore.ts"

export class DeviceGroups extends Context.Service<DeviceGroups, {
  /** Creates a static group, or with a query a dynamic one. */
  readonly create: (
    projectId: ProjectId,
    draft: DeviceGroupDraft
  ) => Effect.Effect<DeviceGroup, InvalidInput | ProjectNotFound | DeviceGroupNameTaken | QuotaExceeded | StoreError>
  /** Returns the group. */
  readonly get: (
    projectId: ProjectId,
    groupId: number
  ) => Effect.Effect<DeviceGroup, DeviceGroupNotFound | StoreError>
  /** Returns a page of the groups of the project. */
  readonly list: (
    projectId: ProjectId,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceGroup>, InvalidInput | StoreError>
  /** Changes the group. Fails with `DeviceGroupKindMismatch` if a static group would get a query. */
  readonly change: (
    projectId: ProjectId,
    groupId: number,
    changes: DeviceGroupChanges
  ) => Effect.Effect<
    DeviceGroup,
    InvalidInput | DeviceGroupNotFound | DeviceGroupNameTaken | DeviceGroupKindMismatch | StoreError
  >
  /** Removes the group; its devices stay. */
  readonly remove: (projectId: ProjectId, groupId: number) => Effect.Effect<void, DeviceGroupNotFound | StoreError>
  /**
   * Adds 1 to 1,000 devices to a static group, all or none, and returns how many
   * the group did not have. Fails with `InvalidInput` if the project has not all
   * of them, and with `DeviceGroupFull` beyond 50,000 devices.
   */
  readonly add: (
    projectId: ProjectId,
    groupId: number,
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<
    number,
    InvalidInput | DeviceGroupNotFound | DeviceGroupKindMismatch | DeviceGroupFull | StoreError
  >
  /** Takes 1 to 1,000 devices from a static group, and returns how many of them it had. */
  readonly take: (
    projectId: ProjectId,
    groupId: number,
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<number, InvalidInput | DeviceGroupNotFound | DeviceGroupKindMismatch | StoreError>
  /** Returns a page of the devices that are in the group now. */
  readonly devices: (
    projectId: ProjectId,
    groupId: number,
    page: PageRequest
  ) => Effect.Effect<Page<DeviceDetail>, InvalidInput | DeviceGroupNotFound | StoreError>
  /** Returns the groups that the device is in now, newest first. */
  readonly ofDevice: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<ReadonlyArray<DeviceGroup>, DeviceNotFound | StoreError>
}>()("@device-cloud/core/group/DeviceGroups") {
  static readonly layer: Layer.Layer<
    DeviceGroups,
    never,
    DeviceGroupStore | DeviceStore | ShadowStore | Quotas
  > = Layer.effect(DeviceGroups, Effect.suspend(() => make))
}

/** Selects the devices of a group. */
export const filterOf = ({ groupId, query }: DeviceGroup): DeviceFilter => query ?? { groupId }

const decodeDraft = decodeInput(DeviceGroupDraft)
const decodeChanges = decodeInput(DeviceGroupChanges)
const decodeAddition = decodeInput(
  Schema.Struct({
    deviceIds: Schema.Array(Text(128).pipe(Schema.brand("DeviceId"))).check(
      Schema.makeFilter(({ length }) =>
        length >= 1 && length <= maxGroupAddition ? undefined : `Expected 1 to ${maxGroupAddition} devices`
      )
    )
  })
)

const make = Effect.gen(function*() {
  const store = yield* DeviceGroupStore
  const devices = yield* DeviceStore
  const shadows = yield* ShadowStore
  const quotas = yield* Quotas

  const get = Effect.fn("DeviceGroups.get")(function*(projectId: ProjectId, groupId: number) {
    return yield* Effect.fromOption(yield* store.get(projectId, groupId), () => new DeviceGroupNotFound({ groupId }))
  })

  const create = Effect.fn("DeviceGroups.create")(function*(projectId: ProjectId, input: DeviceGroupDraft) {
    const { desc = "", name, query = null } = yield* decodeDraft(input)
    const createdAt = yield* Clock.currentTimeMillis
    const insert = store.insert({ projectId, name, desc, query, createdAt, updatedAt: createdAt })
    const group = yield* quotas.within(projectId, "deviceGroups", 1, insert)
    if (group === "taken") return yield* new DeviceGroupNameTaken({ name })
    if (group === "no-project") return yield* new ProjectNotFound({ projectId })
    return group
  })

  const change = Effect.fn("DeviceGroups.change")(
    function*(projectId: ProjectId, groupId: number, input: DeviceGroupChanges) {
      const changes = yield* decodeChanges(input)
      const { query } = yield* get(projectId, groupId)
      if (query === null && changes.query !== undefined) {
        return yield* new DeviceGroupKindMismatch({ groupId, kind: "static" })
      }
      const changed = yield* store.update(projectId, groupId, {
        ...changes,
        updatedAt: yield* Clock.currentTimeMillis
      })
      if (changed === "taken") return yield* new DeviceGroupNameTaken({ name: changes.name ?? "" })
      return yield* Effect.fromOption(changed, () => new DeviceGroupNotFound({ groupId }))
    }
  )

  const remove = Effect.fn("DeviceGroups.remove")(function*(projectId: ProjectId, groupId: number) {
    if (!(yield* store.remove(projectId, groupId))) return yield* new DeviceGroupNotFound({ groupId })
  })

  /** The devices of a call that adds to a static group or takes from it, each once. */
  const named = Effect.fnUntraced(
    function*(projectId: ProjectId, groupId: number, input: ReadonlyArray<DeviceId>) {
      const { deviceIds } = yield* decodeAddition({ deviceIds: input })
      const { query } = yield* get(projectId, groupId)
      if (query !== null) return yield* new DeviceGroupKindMismatch({ groupId, kind: "dynamic" })
      return [...new Set(deviceIds)]
    }
  )

  const add = Effect.fn("DeviceGroups.add")(
    function*(projectId: ProjectId, groupId: number, input: ReadonlyArray<DeviceId>) {
      const outcome = yield* store.add(projectId, groupId, yield* named(projectId, groupId, input))
      switch (outcome._tag) {
        case "Added":
          return outcome.added
        case "NoGroup":
          return yield* new DeviceGroupNotFound({ groupId })
        case "Full":
          return yield* new DeviceGroupFull({ groupId })
        case "Unknown":
          return yield* unknownDevices(outcome.deviceIds)
      }
    }
  )

  const take = Effect.fn("DeviceGroups.take")(
    function*(projectId: ProjectId, groupId: number, input: ReadonlyArray<DeviceId>) {
      return yield* store.take(projectId, groupId, yield* named(projectId, groupId, input))
    }
  )

  const ofDevice = Effect.fn("DeviceGroups.ofDevice")(function*(projectId: ProjectId, deviceId: DeviceId) {
    const { device } = yield* Effect.fromOption(
      yield* devices.get(projectId, { deviceId }),
      () => DeviceNotFound.of({ deviceId })
    )
    const groups = yield* store.possible(projectId, deviceId)
    const isAsked = groups.some(({ query }) => query?.reported !== undefined)
    const shadow = isAsked ? yield* shadows.get(deviceId) : Option.none()
    const reported = Option.match(shadow, { onNone: () => ({}), onSome: ({ reported }) => reported })
    return groups.filter(({ query }) => query === null || matchesFilter(query, device, reported))
  })

  return DeviceGroups.of({
    create,
    get,
    list: paged(store.list),
    change,
    remove,
    add,
    take,
    devices: Effect.fn("DeviceGroups.devices")(function*(projectId, groupId, page) {
      return yield* paged(devices.list)(projectId, filterOf(yield* get(projectId, groupId)), page)
    }),
    ofDevice
  })
})
