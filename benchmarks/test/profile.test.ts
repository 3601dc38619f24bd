import { assert, describe, it } from "@effect/vitest"
import type { Profiler } from "node:inspector"
import { budgetOf } from "../src/profile/Budget.ts"
import { flameGraph } from "../src/profile/FlameGraph.ts"
import { readProfile } from "../src/profile/Profile.ts"
import type { Recording } from "../src/profile/RecordOnSignal.ts"
import { placeOf } from "../src/profile/Stages.ts"

const node = (id: number, functionName: string, url: string, children: Array<number> = []): Profiler.ProfileNode => ({
  id,
  callFrame: { functionName, scriptId: "0", url, lineNumber: 6, columnNumber: 0 },
  children
})

const parse = "<parse>"

/** Effect calls Effect, which calls a payload's reader with a function that is built in, and a write. */
const recorded: Profiler.Profile = {
  nodes: [
    node(1, "(root)", "", [2, 3, 8]),
    node(2, "(idle)", ""),
    node(3, "runLoop", "file:///a/node_modules/effect/dist/internal/effect.js", [4]),
    node(4, "evaluate", "file:///a/node_modules/effect/dist/internal/effect.js", [5, 7]),
    node(5, parse, "file:///a/packages/alink/dist/AlinkMessage.js", [6]),
    node(6, "utf8Slice", ""),
    node(7, "writeBuffer", ""),
    node(8, "(garbage collector)", "")
  ],
  startTime: 0,
  endTime: 0,
  samples: [2, 3, 4, 5, 6, 7, 8],
  timeDeltas: [0, 90_000, 100, 100, 100, 90_000, 100, 100]
}

const recording = (userMicros: number): Recording => ({
  process: userMicros + 500,
  main: { userMicros, systemMicros: 300 },
  database: 1000
})

describe("profiles", () => {
  it("a function belongs to the stage of its file, and one that is built in to its caller", () => {
    assert.strictEqual(placeOf({ file: "core/shadow/Shadow", functionName: "set" }, "outside"), "shadow")
    assert.strictEqual(placeOf({ file: "effect/http/HttpRouter", functionName: "find" }, "outside"), "HTTP")
    assert.strictEqual(placeOf({ file: "", functionName: "utf8Slice" }, "JSON"), "JSON")
    assert.strictEqual(placeOf({ file: "", functionName: "writeBuffer" }, "reply"), "kernel")
    assert.strictEqual(placeOf({ file: "", functionName: "(program)" }, "reply"), "outside")
    assert.strictEqual(placeOf({ file: "somewhere/else", functionName: "f" }, "JSON"), "other")
  })

  it("waiting is no work, and neither is a pause between two samples", () => {
    const { root, stages } = readProfile(recorded)
    assert.deepStrictEqual([...stages], [["Effect", 200], ["JSON", 600], ["garbage collection", 100]])
    assert.strictEqual(root.micros, 1000)
    const calls = [...root.calls.values()].filter(({ micros }) => micros > 0)
    assert.deepStrictEqual(calls.map(({ micros, name }) => [name, micros]), [
      ["Effect", 900],
      ["(garbage collector)", 100]
    ])
  })

  it("the stages of a budget add up to the processor time of server and database", () => {
    const { stages, total } = budgetOf(
      { count: 10, recording: recording(900) },
      { count: 5, recording: recording(1800) },
      readProfile(recorded),
      "sockets"
    )
    assert.strictEqual(total, (900 + 500 + 1000) / 10)
    assert.approximately([...stages.values()].reduce((sum, micros) => sum + micros, 0), total, 1e-9)
    // Half of what the thread did was no JavaScript.
    assert.approximately(stages.get("sockets")!, 45, 1e-9)
    assert.approximately(stages.get("JSON")!, 30, 1e-9)
  })

  it("a graph shows each part that is large enough, with its name as text", () => {
    const { root } = readProfile(recorded)
    const svg = flameGraph("A report & its reply", root)
    assert.include(svg, "A report &amp; its reply")
    assert.include(svg, "&lt;parse&gt; AlinkMessage, 60.0 %")
    assert.notInclude(svg, parse)
    root.calls.get("Effect")!.micros = 2
    assert.notInclude(flameGraph("A report", root), "AlinkMessage")
  })
})
