/**
 * Port: stores how far commands have come. The uplink implements it, so that
 * steps of commands share the transactions of what devices say meanwhile.
 */
import { Context } from "effect"
import type { CommandProgress } from "./Command.ts"

export class CommandLedger extends Context.Service<CommandLedger, {
  /** Stores the step with the next batch; as soon as the store allows, in the order of the calls. */
  readonly advance: (progress: CommandProgress) => void
}>()("@device-cloud/core/command/CommandLedger") {}
