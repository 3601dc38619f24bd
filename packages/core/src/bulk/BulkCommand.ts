/**
 * Bulk commands: one call to many devices, carried out in the background
 * (docs/api/bulk-commands.md).
 */
import { Schema } from "effect"
import { CommandState, TimeToLive } from "../command/Command.ts"
import type { DeviceId, DeviceName } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import type { Json } from "../kernel/Json.ts"
import { Text } from "../kernel/Text.ts"
import type { ProjectId } from "../project/Project.ts"

/** Devices of one bulk command, at most. */
export const maxBulkDevices = 50_000

/** Bulk commands of a project that run at the same time, at most. */
export const maxRunning = 10

const scopes = ["deviceIds", "groupId", "productKey"] as const

/** What the caller decides about a bulk command. Exactly one of `deviceIds`, `groupId` and `productKey` is given. */
export const BulkCommandDraft = Schema.Struct({
  /** These devices. */
  deviceIds: Schema.optional(Schema.Array(Text(128).pipe(Schema.brand("DeviceId")))),
  /** The devices that are in this group now. */
  groupId: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))),
  /** The devices that this product has now. */
  productKey: Schema.optional(Text(128).pipe(Schema.brand("ProductKey"))),
  /** The service to call. Default: the command sets properties. */
  serviceId: Schema.optional(Text(128)),
  params: Schema.Record(Schema.String, Schema.Json),
  /** Seconds, as of a single call. */
  ttl: Schema.optional(TimeToLive)
}).check(Schema.makeFilter((draft) => {
  const [first, second] = scopes.filter((scope) => draft[scope] !== undefined)
  if (first === undefined) return { path: ["deviceIds"], issue: "Expected device_ids, group_id or product_key" }
  if (second !== undefined) return { path: [second], issue: "Expected one of device_ids, group_id and product_key" }
  const { deviceIds } = draft
  if (deviceIds === undefined) return undefined
  const refuse = (issue: string) => ({ path: ["deviceIds"], issue })
  if (deviceIds.length === 0 || deviceIds.length > maxBulkDevices) {
    return refuse(`Expected 1 to ${maxBulkDevices} devices`)
  }
  return new Set(deviceIds).size === deviceIds.length ? undefined : refuse("Expected each device once")
}))
export interface BulkCommandDraft extends Schema.Schema.Type<typeof BulkCommandDraft> {}

/**
 * - `running`: some devices have not been asked yet
 * - `completed`: each device has its command, or the cloud has refused it; the commands go on
 * - `cancelled`: a user has cancelled it
 */
export const BulkCommandStatus = Schema.Literals(["running", "completed", "cancelled"])
export type BulkCommandStatus = typeof BulkCommandStatus.Type

export interface BulkCommand {
  /** Positive; a later bulk command has a greater one. */
  readonly bulkId: number
  readonly projectId: ProjectId
  /** Null: the command sets properties. */
  readonly serviceId: string | null
  readonly params: Readonly<Record<string, Json>>
  /** Seconds. */
  readonly ttl: number
  readonly status: BulkCommandStatus
  /** How many devices it is for. */
  readonly total: number
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The latest time at which devices were asked, or the cancellation, Unix milliseconds. */
  readonly updatedAt: number
}

/** A bulk command before it is stored. */
export type NewBulkCommand = Pick<BulkCommand, "projectId" | "serviceId" | "params" | "ttl" | "createdAt">

/**
 * How far a device has come: `pending` until it is asked, then the state of its
 * command. `failed`: also if the cloud has refused the call; `cancelled`: also
 * before it was asked; `gone`: the store has its command no more, for example
 * because the device was deleted.
 */
export const BulkDeviceState = Schema.Literals(["pending", ...CommandState.literals, "gone"])
export type BulkDeviceState = typeof BulkDeviceState.Type

/** A device of a bulk command. */
export interface BulkDevice {
  readonly deviceId: DeviceId
  readonly deviceName: DeviceName
  readonly state: BulkDeviceState
  /** Its command; null: it has none. */
  readonly messageId: number | null
  /** The code of the device's reply; null: no reply has come. */
  readonly code: number | null
  /** The message of the reply, or why the command ended without one, or was refused. */
  readonly reason: string
}

/** The number of devices in each state; states without devices are left out. */
export type BulkCounts = Readonly<Partial<Record<BulkDeviceState, number>>>

/** The project has no such bulk command. */
export class BulkCommandNotFound extends DomainError<BulkCommandNotFound>()(
  "BulkCommandNotFound",
  {
    bulkId: Schema.Int
  },
  ({ bulkId }) => `There is no bulk command ${bulkId}`
) {}

/** The bulk command is cancelled already. */
export class BulkCommandCancelled extends DomainError<BulkCommandCancelled>()(
  "BulkCommandCancelled",
  {
    bulkId: Schema.Int
  },
  ({ bulkId }) => `Bulk command ${bulkId} is cancelled already`
) {}

/** The scope has more than {@link maxBulkDevices}, or no device; nothing was stored. */
export class BulkScopeUnfit extends DomainError<BulkScopeUnfit>()(
  "BulkScopeUnfit",
  {
    reason: Schema.Literals(["empty", "too-large"])
  },
  ({ reason }) =>
    reason === "empty"
      ? "There are no such devices"
      : `A bulk command is for at most ${maxBulkDevices} devices, and there are more`
) {}

/** {@link maxRunning} bulk commands of the project run. */
export class TooManyBulkCommands extends DomainError<TooManyBulkCommands>()(
  "TooManyBulkCommands",
  {},
  () => `${maxRunning} bulk commands of the project run already`
) {}
