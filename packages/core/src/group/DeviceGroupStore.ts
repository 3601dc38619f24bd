/**
 * Port: where groups of devices are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { DeviceGroup, DeviceGroupChanges, NewDeviceGroup } from "./DeviceGroup.ts"

/** The outcome of an attempt to add devices to a group. */
export type GroupAddition =
  /** `added`: how many of the devices the group did not have before. */
  | { readonly _tag: "Added"; readonly added: number }
  | { readonly _tag: "NoGroup" }
  /** These devices do not exist in the project; nothing was added. */
  | { readonly _tag: "Unknown"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** The group would have more than `maxGroupDevices`; nothing was added. */
  | { readonly _tag: "Full" }

/**
 * Laws: each call is one transaction. A call that takes a project sees only the
 * groups of that project. Names of groups are unique in their project. A device
 * that is removed leaves its groups. `DeviceStore.list` finds the devices that
 * were added to a group by `groupId`.
 */
export class DeviceGroupStore extends Context.Service<DeviceGroupStore, {
  /** Stores a group; `taken`: the name is. */
  readonly insert: (group: NewDeviceGroup) => Effect.Effect<DeviceGroup | "taken" | "no-project", StoreError>
  /** Returns the group; none: there is no such group. */
  readonly get: (projectId: ProjectId, groupId: number) => Effect.Effect<Option.Option<DeviceGroup>, StoreError>
  /** Returns a page of the groups of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<DeviceGroup>, StoreError>
  /** Changes the given fields. Returns the group after the change; none: there is no such group. */
  readonly update: (
    projectId: ProjectId,
    groupId: number,
    change: DeviceGroupChanges & Pick<DeviceGroup, "updatedAt">
  ) => Effect.Effect<Option.Option<DeviceGroup> | "taken", StoreError>
  /** Removes the group; its devices stay. Returns false if there is no such group. */
  readonly remove: (projectId: ProjectId, groupId: number) => Effect.Effect<boolean, StoreError>
  /** Adds devices to a group, all or none. */
  readonly add: (
    projectId: ProjectId,
    groupId: number,
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<GroupAddition, StoreError>
  /** Takes devices from a group. Returns how many of them it had. */
  readonly take: (
    projectId: ProjectId,
    groupId: number,
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<number, StoreError>
  /** Returns the static groups to which the device was added, and all dynamic groups of the project; newest first. */
  readonly possible: (projectId: ProjectId, deviceId: DeviceId) => Effect.Effect<ReadonlyArray<DeviceGroup>, StoreError>
}>()("@device-cloud/core/group/DeviceGroupStore") {}
