/**
 * Gives memory back to the system after a burst. V8 collects garbage while a
 * program allocates: in a process that has little to do, what a burst has left
 * stays for hours (docs/decisions/0077-memory-after-a-burst.md).
 */
import { Effect, Layer, Schedule } from "effect"
import { performance } from "node:perf_hooks"
import { memoryUsage, versions } from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** How often the process is looked at: a collection stops it for 10 to 100 ms. */
const interval = "20 seconds"
/** A collection is due when the process has grown so much since the last one that helped. */
const growth = 1.15
/**
 * Collections after which what is left counts as in use. A collection in the middle of a burst finds nothing: the
 * next ones follow after two intervals, and after four.
 */
const attempts = 3
/** A process whose thread works for more than this part of the time collects anyway. */
const maxUtilization = 0.5

/**
 * Whether a collection moves what is left together. A burst leaves many pages with little in them, which V8 keeps
 * otherwise: of 171 MB, 52 stay in place of 171, and the pause is a quarter longer. V8 of Node.js 22 and later keeps
 * emptied pages for itself all the same.
 */
const compacts = Number.parseInt(versions.node) < 22

/** Collects garbage while the process is idle and has grown, at most every 20 seconds. For servers, once in a process. */
export const layer: Layer.Layer<never> = Layer.effectDiscard(Effect.suspend(() => {
  setFlagsFromString("--expose-gc")
  const gc = runInNewContext("gc") as () => void
  const collect = () => {
    if (!compacts) return gc()
    setFlagsFromString("--compact-on-every-full-gc")
    gc()
    setFlagsFromString("--no-compact-on-every-full-gc")
  }
  let size = memoryUsage.rss()
  let loop = performance.eventLoopUtilization()
  let attempt = 0
  let pause = 0
  const look = Effect.sync(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, loop)
    loop = now
    // A process that has shrunk by itself counts from there.
    size = Math.min(size, memoryUsage.rss())
    if (utilization > maxUtilization) return
    if (memoryUsage.rss() < size * growth) attempt = pause = 0
    else if (pause > 0) pause--
    else {
      collect()
      const left = memoryUsage.rss()
      attempt = left < size * growth ? 0 : (attempt + 1) % attempts
      if (attempt === 0) size = left
      else pause = 2 ** attempt - 1
    }
  })
  return Effect.forkScoped(Effect.repeat(look, Schedule.spaced(interval)))
}))
