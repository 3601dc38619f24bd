/**
 * Port: stores the steps of commands. The uplink implements it, so that steps
 * share the transactions of the devices' messages.
 */
import { Context } from "effect"
import type { CommandProgress } from "./Command.ts"

export class CommandLedger extends Context.Service<CommandLedger, {
  /**
   * Takes a step, which is stored with the next batch. Steps are stored in the
   * order of the calls, as soon as the store can be reached.
   */
  readonly advance: (progress: CommandProgress) => void
}>()("@device-cloud/core/command/CommandLedger") {}
