import {
  defaultProjectId,
  type Execution,
  SceneAction,
  SceneCondition,
  SceneExtensions,
  Scenes
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { everyStorage } from "../../../vitest.storages.ts"
import { cloudOn, executionsOf, newScene, settle } from "./SceneFixtures.ts"

/** Ends as the fiber does that it joins: by an interrupt. */
const joining = Effect.flatMap(Effect.forkChild(Effect.interrupt), Fiber.join)

const note = SceneAction.make({
  uri: "action/test/note",
  params: Schema.Struct({ mode: Schema.Literals(["die", "throw", "join", "hang", "note"]) }),
  attempt: ({ mode }, { id }) => {
    if (mode === "die") return Effect.die("broken")
    if (mode === "throw") throw new Error("broken")
    if (mode === "join") return joining
    return mode === "hang" ? Effect.never : Effect.succeed(SceneAction.succeeded(`Noted ${id}`))
  }
})

const mood = SceneCondition.make({
  uri: "condition/test/mood",
  params: Schema.Struct({ mode: Schema.Literals(["die", "throw", "join", "hang"]) }),
  judge: ({ mode }) => {
    if (mode === "throw") throw new Error("broken")
    if (mode === "join") return joining
    return mode === "die" ? Effect.die("broken") : Effect.never
  }
})

const extensions = SceneExtensions.layer([note, mood])

const noting = (mode: string) => ({ URI: "action/test/note", params: { mode } })
const feeling = (mode: string) => ({ URI: "condition/test/mood", params: { mode } })

it.effect("attempts that die fail, and those that hang are tried again", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    yield* Effect.gen(function*() {
      const sceneId = yield* newScene({ actions: [noting("die"), noting("hang"), noting("note")] })
      const executionId = yield* (yield* Scenes).run(defaultProjectId, sceneId)
      yield* settle
      yield* TestClock.adjust("61 seconds")
      const [execution] = yield* executionsOf(sceneId)
      assert.deepStrictEqual(execution!.outcomes.map(({ detail, status }) => [status, detail]), [
        ["failed", "Internal error"],
        ["pending", "The attempt did not end within 60 seconds"],
        ["succeeded", `Noted ${executionId}.2`]
      ])
    }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(extensions))))
  }))

for (const [mode, fault] of [["throw", "throws"], ["join", "is interrupted by itself"]] as const) {
  it.effect(`an attempt that ${fault} fails, a condition that does so does not hold, and what follows goes on`, () =>
    Effect.gen(function*() {
      const stores = yield* Layer.build(StorageMemory.layer)
      yield* Effect.gen(function*() {
        const scenes = yield* Scenes
        const acting = yield* newScene({ actions: [noting(mode), noting("note")] })
        const asking = yield* newScene({ conditions: [feeling(mode)] })
        const runBoth = yield* newScene({
          actions: [acting, asking].map((sceneId) => ({ URI: "action/rule", params: { scene_id: sceneId } }))
        })
        yield* scenes.run(defaultProjectId, runBoth)
        yield* settle
        assert.deepStrictEqual(
          (yield* executionsOf(acting)).map(({ outcomes }) => outcomes.map(({ status }) => status)),
          [["failed", "succeeded"]]
        )
        assert.deepStrictEqual((yield* executionsOf(asking)).map(({ reason, status }) => [status, reason]), [
          ["not_met", "Condition 1 does not hold: Internal error"]
        ])
      }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(extensions))))
    }))
}

/** What a program without types may result in. */
const oddResults: Record<string, unknown> = {
  "nothing": undefined,
  "null": null,
  "a text": "done",
  "true": true,
  "another status": { status: "done", detail: "" },
  "no detail": { status: "succeeded" },
  "another detail": { status: "succeeded", detail: 1n },
  "another verdict": { verdict: false, source: "", time: null, reason: "" },
  "no reason": { verdict: "holds", source: "", time: null },
  "another time": { verdict: "holds", source: "", time: Number.NaN, reason: "" },
  "another value": { verdict: "holds", value: 1n, source: "", time: null, reason: "" }
}

for (const [name, result] of Object.entries(oddResults)) {
  it.effect(`an attempt that results in ${name} fails at once, and such a condition does not hold`, () =>
    Effect.gen(function*() {
      const stores = yield* Layer.build(StorageMemory.layer)
      const act = SceneAction.make({
        uri: "action/test/odd",
        params: Schema.Struct({}),
        attempt: () => Effect.succeed(result as SceneAction.Attempt)
      })
      const ask = SceneCondition.make({
        uri: "condition/test/odd",
        params: Schema.Struct({}),
        judge: () => Effect.succeed(result as never)
      })
      yield* Effect.gen(function*() {
        const acting = yield* newScene({ actions: [{ URI: "action/test/odd", params: {} }] })
        const asking = yield* newScene({ conditions: [{ URI: "condition/test/odd", params: {} }] })
        const runBoth = yield* newScene({
          actions: [acting, asking].map((sceneId) => ({ URI: "action/rule", params: { scene_id: sceneId } }))
        })
        yield* (yield* Scenes).run(defaultProjectId, runBoth)
        yield* settle
        assert.deepStrictEqual(
          (yield* executionsOf(acting)).map(({ outcomes }) => outcomes.map(({ detail, status }) => [status, detail])),
          [[["failed", "Internal error"]]]
        )
        assert.deepStrictEqual((yield* executionsOf(asking)).map(({ reason, status }) => [status, reason]), [
          ["not_met", "Condition 1 does not hold: Internal error"]
        ])
      }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(SceneExtensions.layer([act, ask])))))
    }))
}

const hasEnded = { until: ([latest]: ReadonlyArray<Execution>) => latest?.dueAt === null }

for (const [name, storage] of everyStorage) {
  it.live(`of what an application's part says, the beginning is kept, as every store can keep it, on ${name}`, () =>
    Effect.gen(function*() {
      const stores = yield* Layer.build(storage)
      const said = `a\0\ud800${"x".repeat(1020)}\u{1f600}${"x".repeat(100_000)}`
      const kept = `a\ufffd\ufffd${"x".repeat(1020)}`
      const act = SceneAction.make({
        uri: "action/test/say",
        params: Schema.Struct({}),
        attempt: () => Effect.succeed(SceneAction.succeeded(said))
      })
      const ask = SceneCondition.make({
        uri: "condition/test/say",
        params: Schema.Struct({}),
        judge: () => {
          // JSON cannot say what the application has put beside.
          const beside = { beside: 1n }
          return Effect.succeed({ verdict: "fails", value: 1, source: said, time: null, reason: said, ...beside })
        }
      })
      yield* Effect.gen(function*() {
        const acting = yield* newScene({ actions: [{ URI: "action/test/say", params: {} }] })
        const asking = yield* newScene({ conditions: [{ URI: "condition/test/say", params: {} }] })
        const runBoth = yield* newScene({
          actions: [acting, asking].map((sceneId) => ({ URI: "action/rule", params: { scene_id: sceneId } }))
        })
        yield* (yield* Scenes).run(defaultProjectId, runBoth)
        const [acted] = yield* eventually(executionsOf(acting), hasEnded)
        assert.deepStrictEqual(acted!.outcomes.map(({ detail }) => detail), [kept])
        const [asked] = yield* eventually(executionsOf(asking), hasEnded)
        assert.deepStrictEqual([asked!.status, asked!.reason], ["not_met", `Condition 1 does not hold: ${kept}`])
        const { condition, ...finding } = asked!.verdict!.conditions[0]!
        assert.strictEqual(condition._tag, "Custom")
        assert.deepStrictEqual(finding, { verdict: "fails", value: 1, source: kept, time: null, reason: kept })
      }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(SceneExtensions.layer([act, ask])))))
    }))
}

it.effect("a condition that dies or hangs does not hold, and holds up nobody else", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    yield* Effect.gen(function*() {
      const scenes = yield* Scenes
      const [first, slow, quick] = [
        yield* newScene({ conditions: [feeling("die")] }),
        yield* newScene({ conditions: [feeling("hang")] }),
        yield* newScene({ actions: [noting("note")] })
      ]
      const runAll = yield* newScene({
        actions: [first, slow, quick].map((sceneId) => ({ URI: "action/rule", params: { scene_id: sceneId } }))
      })
      yield* scenes.run(defaultProjectId, runAll)
      yield* settle
      assert.deepStrictEqual((yield* executionsOf(quick)).map(({ status }) => status), ["succeeded"])
      assert.deepStrictEqual((yield* executionsOf(slow)).map(({ status }) => status), ["pending"])
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.deepStrictEqual(
        [...yield* executionsOf(first), ...yield* executionsOf(slow)].map(({ reason, status }) => [status, reason]),
        [
          ["not_met", "Condition 1 does not hold: Internal error"],
          ["not_met", "Condition 1 does not hold: condition/test/mood was not judged within 10 seconds"]
        ]
      )
    }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(extensions))))
  }))

it.effect("a node without the extension tries an action again, fails a condition, and says so", () =>
  Effect.gen(function*() {
    const stores = yield* Layer.build(StorageMemory.layer)
    const [acting, asking] = yield* Effect.gen(function*() {
      const acting = yield* newScene({ actions: [noting("note")] })
      return [acting, yield* newScene({ conditions: [feeling("die")] })] as const
    }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(extensions))))

    yield* Effect.gen(function*() {
      const scenes = yield* Scenes
      yield* scenes.run(defaultProjectId, acting)
      yield* newScene({ actions: [{ URI: "action/rule", params: { scene_id: asking } }] }).pipe(
        Effect.flatMap((sceneId) => scenes.run(defaultProjectId, sceneId))
      )
      yield* settle
      assert.deepInclude((yield* executionsOf(acting))[0]!.outcomes[0], {
        status: "pending",
        detail: "No action action/test/note is registered on this node: register it with SceneExtensions.layer"
      })
      assert.deepInclude((yield* executionsOf(asking))[0], {
        status: "failed",
        reason: "No condition condition/test/mood is registered on this node: register it with SceneExtensions.layer"
      })
    }).pipe(Effect.provide(cloudOn(stores)))

    // A node that knows the action does it.
    yield* Effect.gen(function*() {
      yield* TestClock.adjust("10 seconds")
      yield* settle
      assert.deepInclude((yield* executionsOf(acting))[0], { status: "succeeded" })
    }).pipe(Effect.provide(cloudOn(stores).pipe(Layer.provide(extensions))))
  }))

it.effect("a URI stands for one extension", () =>
  Effect.gen(function*() {
    const twice = yield* Effect.exit(Layer.build(SceneExtensions.layer([note, note])))
    assert.isTrue(Exit.isFailure(twice) && Cause.hasDies(twice.cause))
  }).pipe(Effect.scoped))
