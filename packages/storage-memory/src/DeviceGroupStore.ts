/**
 * Groups of devices in memory.
 */
import {
  type DeviceGroup,
  DeviceGroupStore,
  type DeviceId,
  type GroupAddition,
  maxGroupDevices,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: devices are found by their group. */
export const layer: Layer.Layer<DeviceGroupStore, never, Tables> = Layer.effect(
  DeviceGroupStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ deviceGroups, devices, groupDevices, nextId, projects }: Tables["Service"]) => {
  const find = (projectId: ProjectId, groupId: number): DeviceGroup | undefined => {
    const group = deviceGroups.get(groupId)
    return group?.projectId === projectId ? group : undefined
  }

  const ofProject = (projectId: ProjectId) =>
    [...deviceGroups.values()].filter((group) => group.projectId === projectId)

  const isTaken = (projectId: ProjectId, name: string) => ofProject(projectId).some((group) => group.name === name)

  return DeviceGroupStore.of({
    insert: (draft) =>
      Effect.sync(() => {
        if (!projects.has(draft.projectId)) return "no-project"
        if (isTaken(draft.projectId, draft.name)) return "taken"
        const group = { ...draft, groupId: nextId() }
        deviceGroups.set(group.groupId, group)
        return group
      }),
    get: (projectId, groupId) => Effect.sync(() => Option.fromUndefinedOr(find(projectId, groupId))),
    list: (projectId, page) => Effect.sync(() => paginate(ofProject(projectId), page)),
    update: (projectId, groupId, { updatedAt, ...change }) =>
      Effect.sync(() => {
        const group = find(projectId, groupId)
        if (group === undefined) return Option.none()
        const { desc = group.desc, name = group.name, query = group.query } = change
        if (name !== group.name && isTaken(projectId, name)) return "taken"
        const changed = { ...group, name, desc, query, updatedAt }
        deviceGroups.set(groupId, changed)
        return Option.some(changed)
      }),
    remove: (projectId, groupId) =>
      Effect.sync(() => {
        if (find(projectId, groupId) === undefined) return false
        groupDevices.delete(groupId)
        return deviceGroups.delete(groupId)
      }),
    add: (projectId, groupId, deviceIds) =>
      Effect.sync((): GroupAddition => {
        if (find(projectId, groupId) === undefined) return { _tag: "NoGroup" }
        const unknown = deviceIds.filter((deviceId) => devices.get(deviceId)?.projectId !== projectId)
        if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
        const before = groupDevices.get(groupId) ?? new Set<DeviceId>()
        const after = new Set([...before, ...deviceIds])
        if (after.size > maxGroupDevices) return { _tag: "Full" }
        groupDevices.set(groupId, after)
        return { _tag: "Added", added: after.size - before.size }
      }),
    take: (projectId, groupId, deviceIds) =>
      Effect.sync(() => {
        const members = find(projectId, groupId) === undefined ? undefined : groupDevices.get(groupId)
        return deviceIds.filter((deviceId) => members?.delete(deviceId) === true).length
      }),
    possible: (projectId, deviceId) =>
      Effect.sync(() =>
        paginate(
          ofProject(projectId).filter(({ groupId, query }) =>
            query !== null || groupDevices.get(groupId)?.has(deviceId) === true
          ),
          { page: 1, pageSize: deviceGroups.size }
        ).items
      )
  })
}
