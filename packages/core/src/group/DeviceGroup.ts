/**
 * Groups of devices: a static group has the devices that were added to it, a
 * dynamic one those for which its query holds (docs/api/device-groups.md).
 */
import { Schema } from "effect"
import { DeviceStatus, Tags } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { isWellFormed, NonBlankText, Text } from "../kernel/Text.ts"
import type { ProjectId } from "../project/Project.ts"

/** Devices in a static group, at most. */
export const maxGroupDevices = 50_000

/** Devices that one call adds to a group or takes from it, at most. */
export const maxGroupAddition = 1000

/** Reported values in a query, at most. */
const maxReported = 10

/** Characters of a property id in a query, at most. */
const maxIdLength = 128

/** Reported values by property. A check of the keys themselves would leave out those that fail it. */
const Reported = Schema.Record(Schema.String, Schema.Union([Text(1024), Schema.Finite, Schema.Boolean])).check(
  Schema.makeFilter((values) => {
    const ids = Object.keys(values)
    if (ids.length > maxReported) return `Expected at most ${maxReported}`
    return ids.every((id) => id.length <= maxIdLength && isWellFormed(id))
      ? undefined
      : `Expected property ids of at most ${maxIdLength} characters, without NUL characters and unpaired surrogates`
  })
)

/** The devices of a dynamic group: those for which all given conditions hold. */
export const DeviceQuery = Schema.Struct({
  productKey: Schema.optional(Text(128).pipe(Schema.brand("ProductKey"))),
  batchId: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))),
  status: Schema.optional(DeviceStatus),
  /** Tags that the device has, at most 50. */
  tags: Schema.optional(Tags),
  /** The beginning of the device name or the nickname. */
  keyword: Schema.optional(NonBlankText(128)),
  /**
   * Values that the device has reported last, at most 10, by property: text,
   * numbers, true or false, as they are stored. Needs `productKey`.
   */
  reported: Schema.optional(Reported)
}).check(Schema.makeFilter(({ productKey, reported, tags, ...others }) => {
  const conditions = [
    productKey,
    ...Object.values(tags ?? {}),
    ...Object.values(reported ?? {}),
    ...Object.values(others)
  ]
  if (conditions.every((condition) => condition === undefined)) return "Expected at least one condition"
  return reported !== undefined && productKey === undefined
    ? { path: ["reported"], issue: "Expected product_key beside it" }
    : undefined
}))
export interface DeviceQuery extends Schema.Schema.Type<typeof DeviceQuery> {}

/** What the caller decides about a new group. */
export const DeviceGroupDraft = Schema.Struct({
  /** Unique in the project: 1 to 128 characters. */
  name: NonBlankText(128),
  desc: Schema.optional(Text(1024)),
  /** Makes the group a dynamic one. */
  query: Schema.optional(DeviceQuery)
})
export interface DeviceGroupDraft extends Schema.Schema.Type<typeof DeviceGroupDraft> {}

/** What the caller may change of a group; what is left out stays. A static group has no query. */
export const DeviceGroupChanges = Schema.Struct({
  name: Schema.optional(NonBlankText(128)),
  desc: Schema.optional(Text(1024)),
  query: Schema.optional(DeviceQuery)
})
export interface DeviceGroupChanges extends Schema.Schema.Type<typeof DeviceGroupChanges> {}

export interface DeviceGroup {
  /** Positive; a later group has a greater one. */
  readonly groupId: number
  readonly projectId: ProjectId
  readonly name: string
  readonly desc: string
  /** Null: the group is static. */
  readonly query: DeviceQuery | null
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** A group before it is stored. */
export type NewDeviceGroup = Omit<DeviceGroup, "groupId">

/** The project has no such group. */
export class DeviceGroupNotFound extends DomainError<DeviceGroupNotFound>()(
  "DeviceGroupNotFound",
  {
    groupId: Schema.Int
  },
  ({ groupId }) => `There is no device group ${groupId}`
) {}

/** The project has a group of this name. */
export class DeviceGroupNameTaken extends DomainError<DeviceGroupNameTaken>()(
  "DeviceGroupNameTaken",
  {
    name: Schema.String
  },
  ({ name }) => `There is a device group ${name} already`
) {}

/** The group is dynamic and the call adds or takes devices, or it is static and the call has a query. */
export class DeviceGroupKindMismatch extends DomainError<DeviceGroupKindMismatch>()(
  "DeviceGroupKindMismatch",
  {
    groupId: Schema.Int,
    kind: Schema.Literals(["static", "dynamic"])
  },
  ({ groupId, kind }) =>
    kind === "dynamic"
      ? `Device group ${groupId} is dynamic: its query decides which devices it has`
      : `Device group ${groupId} is static and has no query`
) {}

/** The static group would have more than {@link maxGroupDevices}; nothing was added. */
export class DeviceGroupFull extends DomainError<DeviceGroupFull>()(
  "DeviceGroupFull",
  {
    groupId: Schema.Int
  },
  ({ groupId }) => `Device group ${groupId} would have more than ${maxGroupDevices} devices`
) {}
