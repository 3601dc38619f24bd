/**
 * Port: the ledger of commands.
 */
import { Context, type Effect, type Option } from "effect"
import type { Owner } from "../connection/PresenceStore.ts"
import type { DeviceId } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ProjectId } from "../project/Project.ts"
import type { ShadowModification } from "../shadow/ShadowStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Command, CommandProgress, NewCommand } from "./Command.ts"

/** A command to store, with a change of the device's shadow. */
export interface Enqueue {
  readonly command: NewCommand
  /**
   * The epoch of the session to which the command is handed as soon as it is stored:
   * it is stored as `sent` if that session owns the device, otherwise as `queued`.
   * Default: none.
   */
  readonly epoch?: number | undefined
  /** For a device that is not connected: puts the values among the desired ones of its shadow. */
  readonly desire?: ShadowModification<unknown>["modify"]
}

/** A stored command, and what counted when it was stored. */
export interface Enqueued {
  readonly command: Command
  /** The message id of the device's command before it; 0: none; undefined: this one was there before the call. */
  readonly previous: number | undefined
  /** The session that owns the device; undefined: it is not connected. */
  readonly owner: Pick<Owner, "nodeId" | "epoch"> | undefined
}

/** Why a command is not stored: the device has `maxWaiting` unfinished ones, is disabled, or does not exist. */
export type NotEnqueued = "full" | "disabled" | "no-device"

/**
 * Laws: message ids grow in the order of the calls and of their items. Those of one
 * device grow in the order of the commits, however many nodes store commands: whoever
 * sees a command sees all earlier ones. If the
 * device already has a command from this origin, be it of the same call, `enqueue`
 * returns it unchanged, whether the device takes others or not.
 * A command moves forward only (`rankOf`), so it reaches exactly one final
 * state; a step back has no effect. Each step to `sent` counts one delivery of a
 * command that has not ended, also of one that is `acked` and stays so; a command
 * that is stored as `sent` has one. A step with a code, the reply of the device, that
 * is the end of a command without a delivery counts one.
 */
export class CommandStore extends Context.Service<CommandStore, {
  /**
   * Stores each command in one transaction with its change of the shadow.
   * Returns the results in the order of the items.
   */
  readonly enqueue: (items: ReadonlyArray<Enqueue>) => Effect.Effect<ReadonlyArray<Enqueued | NotEnqueued>, StoreError>
  /**
   * Stores the state, code, message and data of each step. A step that names a
   * command of another device has no effect.
   */
  readonly advance: (steps: ReadonlyArray<CommandProgress>) => Effect.Effect<void, StoreError>
  /**
   * Returns the commands of the device that have neither ended nor expired at
   * `now`, Unix milliseconds, with message ids above `after`: oldest first, at
   * most `limit`.
   */
  readonly unfinished: (options: {
    readonly deviceId: DeviceId
    readonly after: number
    readonly now: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<Command>, StoreError>
  /** Returns the command of the device with this id. */
  readonly get: (deviceId: DeviceId, messageId: number) => Effect.Effect<Option.Option<Command>, StoreError>
  /** Returns the commands of the device, newest first. */
  readonly list: (deviceId: DeviceId, page: PageRequest) => Effect.Effect<Page<Command>, StoreError>
  /**
   * Cancels the command if it is queued, at `at`, Unix milliseconds. Returns the
   * command as it is afterwards; none: it does not exist.
   */
  readonly cancel: (
    deviceId: DeviceId,
    messageId: number,
    at: number
  ) => Effect.Effect<Option.Option<Command>, StoreError>
  /**
   * Expires queued commands whose time is over at `now`, Unix milliseconds, and
   * delivered ones whose time was over `grace` milliseconds earlier; at most
   * `limit`. Returns the project of each.
   */
  readonly expire: (options: {
    readonly now: number
    readonly grace: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<ProjectId>, StoreError>
  /**
   * Removes commands that ended before `before`, Unix milliseconds, at most
   * `limit`. Returns how many.
   */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/command/CommandStore") {}
