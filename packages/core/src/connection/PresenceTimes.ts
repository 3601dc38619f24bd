/**
 * How often nodes speak and look (docs/ownership.md). All nodes of a cloud have the
 * same times.
 */
import { Context } from "effect"
import type { HeartbeatLimits } from "./PresenceStore.ts"

/** In milliseconds. */
export interface PresenceTimes extends HeartbeatLimits {
  /** Between two heartbeats of a node, and between its looks for sightings that end. It looks twice as often for silent nodes. */
  readonly beat: number
  /** Between two comparisons of all sessions of a node with the store. */
  readonly sweep: number
}

/** A node that dies is noticed after `silence` and two `beat`s at the latest. */
export const PresenceTimes = Context.Reference<PresenceTimes>("@device-cloud/core/connection/PresenceTimes", {
  defaultValue: () => ({ beat: 2000, gap: 5000, silence: 9000, sweep: 10_000 })
})
