/**
 * Loaded before a server: says the longest pause of its event loop, in milliseconds,
 * since it was asked before.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"

/** Milliseconds between two looks. */
const resolution = 1
const delay = monitorEventLoopDelay({ resolution })
delay.enable()
process.on("message", () => {
  process.send!(Math.max(0, delay.max / 1e6 - resolution))
  delay.reset()
})
// The channel alone does not keep the server alive.
process.channel?.unref()
