/**
 * Port: stores the steps of commands. The uplink implements it, so that steps
 * share the transactions of the devices' messages.
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { CommandProgress } from "./Command.ts"

export class CommandLedger extends Context.Service<CommandLedger, {
  /**
   * Takes a step, which is stored with the next batch. Steps are stored in the
   * order of the calls, as soon as the store can be reached.
   */
  readonly advance: (progress: CommandProgress) => void
  /** Waits until the steps of the device's commands that were taken so far are stored, and its replies that have come so far. */
  readonly settled: (deviceId: DeviceId) => Effect.Effect<void>
}>()("@device-cloud/core/command/CommandLedger") {}
