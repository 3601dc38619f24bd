/**
 * Port: the ledger of commands.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ShadowModification } from "../shadow/ShadowStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Command, CommandProgress, NewCommand } from "./Command.ts"

/** A command to be stored, and what it makes of the device's shadow. */
export interface Enqueue {
  readonly command: NewCommand
  /** For a device that is not connected: its desired values. */
  readonly desire?: ShadowModification<unknown>["modify"]
}

/**
 * Laws: message ids grow in the order of the calls and of their items. A call
 * whose origin the device has a command of answers that command, as it is. A
 * command moves forward only (`rankOf`), so that it has exactly one final
 * state; what would move it back is without effect.
 */
export class CommandStore extends Context.Service<CommandStore, {
  /**
   * Stores each command, with its change of the shadow in one transaction. In the order of the items: the command, or `full` when the
   * device has as many commands as may wait, or `no-device`.
   */
  readonly enqueue: (
    items: ReadonlyArray<Enqueue>
  ) => Effect.Effect<ReadonlyArray<Command | "full" | "no-device">, StoreError>
  /** The state, code, message and data of each. Steps of commands of other devices are without effect. */
  readonly advance: (steps: ReadonlyArray<CommandProgress>) => Effect.Effect<void, StoreError>
  /** Commands that the device has not confirmed and that may still be delivered, after `after`, oldest first. */
  readonly undelivered: (options: {
    readonly deviceId: DeviceId
    readonly after: number
    readonly now: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<Command>, StoreError>
  readonly get: (deviceId: DeviceId, messageId: number) => Effect.Effect<Option.Option<Command>, StoreError>
  /** Newest first. */
  readonly list: (deviceId: DeviceId, page: PageRequest) => Effect.Effect<Page<Command>, StoreError>
  /** Cancels a queued command; answers it as it is afterwards. */
  readonly cancel: (
    deviceId: DeviceId,
    messageId: number,
    at: number
  ) => Effect.Effect<Option.Option<Command>, StoreError>
  /**
   * Ends queued commands whose time is over at `now`, and others whose time was
   * over `grace` milliseconds earlier; at most `limit`. Answers how many.
   */
  readonly expire: (options: {
    readonly now: number
    readonly grace: number
    readonly limit: number
  }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/command/CommandStore") {}
