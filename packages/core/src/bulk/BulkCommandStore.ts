/**
 * Port: where bulk commands are kept, and what is left to do for each.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { DeviceFilter } from "../device/DeviceFilter.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { BulkCommand, BulkCounts, BulkDevice, BulkDeviceState, NewBulkCommand } from "./BulkCommand.ts"

/** The devices that a new bulk command is for. */
export type BulkScope =
  | { readonly _tag: "Named"; readonly deviceIds: ReadonlyArray<DeviceId> }
  | { readonly _tag: "Matching"; readonly filter: DeviceFilter }

/** In every case but `Created`, nothing was stored. */
export type BulkCreated =
  | { readonly _tag: "Created"; readonly bulk: BulkCommand }
  /** These devices do not exist in the project. */
  | { readonly _tag: "Unknown"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** No device matches. */
  | { readonly _tag: "Empty" }
  /** More than `maxBulkDevices` match. */
  | { readonly _tag: "TooLarge" }
  /** The project has `maxRunning` bulk commands that run. */
  | { readonly _tag: "Busy" }

/** The origin of the commands that a bulk command makes: a device has one of it at most. */
export const bulkOrigin = (bulkId: number): string => `bulk ${bulkId}`

/** One thing to do for a device. */
export interface BulkTurn {
  readonly bulk: BulkCommand
  /** Names the device in its bulk command. */
  readonly place: number
  readonly deviceId: DeviceId
  /** The command to cancel; null: the device is to be asked. */
  readonly cancels: number | null
}

/** What came of a turn that asked a device: its command, or why there is none. A turn that cancels needs neither. */
export interface BulkOutcome {
  readonly turn: Pick<BulkTurn, "place" | "cancels"> & { readonly bulk: Pick<BulkCommand, "bulkId"> }
  readonly messageId: number | null
  readonly reason: string
}

/**
 * Laws: each call is one transaction. The devices of a bulk command are fixed
 * when it is stored, in the order in which they were created or named. Ended bulk
 * commands keep their devices, also those that are removed.
 */
export class BulkCommandStore extends Context.Service<BulkCommandStore, {
  /** Stores a bulk command with its devices, none of them asked yet. */
  readonly insert: (bulk: NewBulkCommand, scope: BulkScope) => Effect.Effect<BulkCreated, StoreError>
  /** Returns the bulk command and how far its devices have come; none: there is no such bulk command. */
  readonly get: (
    projectId: ProjectId,
    bulkId: number
  ) => Effect.Effect<Option.Option<{ readonly bulk: BulkCommand; readonly counts: BulkCounts }>, StoreError>
  /** Returns a page of the bulk commands of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<BulkCommand>, StoreError>
  /** Counts the bulk commands of the project that have turns left. */
  readonly countUnderWay: (projectId: ProjectId) => Effect.Effect<number, StoreError>
  /** Returns a page of the devices of a bulk command, those in `state` or all, in their order. */
  readonly devices: (
    bulkId: number,
    state: BulkDeviceState | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<BulkDevice>, StoreError>
  /**
   * Cancels the bulk command at `at`, Unix milliseconds: devices that were not
   * asked never are, and there is a turn for each command that was made, also for
   * one whose outcome nobody has stored: it has the {@link bulkOrigin}. Returns false
   * if it is cancelled already.
   */
  readonly cancel: (bulkId: number, at: number) => Effect.Effect<boolean, StoreError>
  /**
   * Takes turns of `bulks` bulk commands, those first that have waited longest, at
   * most `perBulk` of each. No two callers get the same turn until `again`, Unix
   * milliseconds; it is over when `settle` gets its outcome. A turn that somebody has
   * for more than twice as long from `now` is free: a clock that was ahead gave it.
   */
  readonly claim: (options: {
    readonly now: number
    readonly again: number
    readonly bulks: number
    readonly perBulk: number
  }) => Effect.Effect<ReadonlyArray<BulkTurn>, StoreError>
  /**
   * Stores the outcomes of turns. A command that was made while its bulk command
   * was cancelled gets a turn of its own. An outcome of a turn that is over has no
   * effect. `at`: Unix milliseconds.
   */
  readonly settle: (outcomes: ReadonlyArray<BulkOutcome>, at: number) => Effect.Effect<void, StoreError>
  /**
   * Removes bulk commands without turns of which the last command was over before
   * `before`, Unix milliseconds: they last changed `ttl` before that. At most
   * `limit`, after their devices: in several transactions, so that none is long.
   * Returns how many bulk commands.
   */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/bulk/BulkCommandStore") {}
