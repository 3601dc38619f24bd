import { DeviceLifecycle, ProjectId } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer } from "effect"
import { Transactions } from "../src/kernel/Transactions.ts"

it.effect("changes of the devices of a project hold two transactions at once, and keep no other project waiting", () => {
  const gate = Latch.makeUnsafe()
  let begun = 0
  const transactions = Layer.succeed(
    Transactions,
    Transactions.of({
      within: (work) => Effect.andThen(Effect.sync(() => void begun++), Effect.andThen(gate.await, work))
    })
  )
  return Effect.gen(function*() {
    const lifecycle = yield* DeviceLifecycle
    const done: Array<string> = []
    const begin = (projectId: string, name: string) =>
      Effect.forkChild(
        lifecycle.commit(ProjectId.make(projectId), Effect.sync(() => done.push(name)), () => undefined),
        { startImmediately: true }
      )
    const names = ["1", "2", "3", "4", "5"]
    const fibers = yield* Effect.forEach(names, (name) => begin("many", name))
    assert.strictEqual(begun, 2)
    const other = yield* begin("other", "other")
    assert.strictEqual(begun, 3)
    // One that gives up gives its turn back.
    yield* Fiber.interrupt(fibers[0]!)
    assert.strictEqual(begun, 4)
    yield* gate.open
    yield* Fiber.joinAll([...fibers.slice(1), other])
    assert.sameMembers(done, ["2", "3", "4", "5", "other"])
  }).pipe(Effect.provide(DeviceLifecycle.layer.pipe(Layer.provide(transactions))))
})
