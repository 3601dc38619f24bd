/**
 * A profile of V8 as a tree of functions with their stages.
 */
import type { Profiler } from "node:inspector"
import { fileOf, type Place, placeOf, type Stage } from "./Stages.ts"

/** A function that was called from the function above it, with the time of those that it called. */
export interface Call {
  readonly name: string
  readonly place: Place
  micros: number
  readonly calls: Map<string, Call>
}

export interface Profile {
  /** Microseconds of JavaScript by stage, without what the kernel takes. */
  readonly stages: ReadonlyMap<Stage, number>
  readonly root: Call
}

/** A sample stands for at most this time: while others have the processor, there are none. */
const longest = 500

/** Functions of one runtime that call each other are one box. */
const runtimeOf = (file: string): string | undefined => file.startsWith("effect/") ? "Effect" : undefined

/** Reads what V8 has recorded. Time in which no function ran is left out. */
export const readProfile = ({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Profile => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const callers = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)))
  const root: Call = { name: "all", place: "outside", micros: 0, calls: new Map() }
  const known = new Map<number, ReadonlyArray<Call>>()
  /** The calls from the root to a node. */
  const pathTo = (id: number): ReadonlyArray<Call> => {
    const before = known.get(id)
    if (before !== undefined) return before
    const caller = callers.get(id)
    if (caller === undefined) return [root]
    const path = pathTo(caller)
    const { callFrame: { functionName, lineNumber, url } } = byId.get(id)!
    const file = fileOf(url)
    const above = path.at(-1)!
    const place = placeOf({ functionName, file }, above.place)
    const module = file.split("/").at(-1)!
    const runtime = place === "Effect" ? runtimeOf(file) : undefined
    const name = runtime ?? `${functionName === "" ? `${module}:${lineNumber + 1}` : functionName}`
    const key = runtime ?? `${name} ${file}`
    let call = runtime !== undefined && above.name === runtime ? above : above.calls.get(key)
    if (call === undefined) {
      call = {
        name: file === "" || runtime !== undefined ? name : `${name} ${module}`,
        place,
        micros: 0,
        calls: new Map()
      }
      above.calls.set(key, call)
    }
    const whole = call === above ? path : [...path, call]
    known.set(id, whole)
    return whole
  }
  const byStage = new Map<Stage, number>()
  for (const [i, id] of samples.entries()) {
    const micros = Math.min(longest, Math.max(0, timeDeltas[i + 1] ?? 0))
    const path = pathTo(id)
    const { place } = path.at(-1)!
    if (place === "outside") continue
    for (const call of path) call.micros += micros
    if (place !== "kernel") byStage.set(place, (byStage.get(place) ?? 0) + micros)
  }
  return { stages: byStage, root }
}
