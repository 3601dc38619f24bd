import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Batcher from "../src/kernel/Batcher.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", { item: Schema.Int }) {}

const make = Effect.fnUntraced(function*(
  commit: (items: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<number>, Refused>,
  capacity = 100
) {
  const batches: Array<ReadonlyArray<number>> = []
  const group = yield* Batcher.make<number, number, Refused>({
    capacity,
    maxBatch: 4,
    commit: (items) => {
      batches.push(items)
      return commit(items)
    },
    isolates: () => true
  })
  return { group, batches }
})

const double = (items: ReadonlyArray<number>) => Effect.succeed(items.map((item) => item * 2))

it.effect("answers each item with its own result, in batches of limited size", () =>
  Effect.gen(function*() {
    const { batches, group } = yield* make(double)
    const items = Array.from({ length: 10 }, (_, i) => i)
    const answers = yield* Effect.forEach(items, group.submit, { concurrency: "unbounded" })
    assert.deepStrictEqual(answers, items.map((item) => item * 2))
    assert.deepStrictEqual(batches.flat(), items)
    assert.isTrue(batches.every(({ length }) => length <= 4))
  }))

it.effect("collects what arrives while a batch is being committed", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { batches, group } = yield* make((items) => Effect.andThen(Deferred.await(gate), double(items)))
    const first = yield* Effect.forkChild(group.submit(1))
    yield* Effect.yieldNow
    yield* Effect.yieldNow
    const rest = yield* Effect.forkChild(Effect.forEach([2, 3], group.submit, { concurrency: "unbounded" }))
    yield* Effect.yieldNow
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual(yield* Fiber.join(first), 2)
    assert.deepStrictEqual(yield* Fiber.join(rest), [4, 6])
    assert.deepStrictEqual(batches, [[1], [2, 3]])
  }))

it.effect("collects while each turn brings more", () =>
  Effect.gen(function*() {
    const { batches, group } = yield* make(double)
    const inTurn = (item: number) =>
      Effect.andThen(Effect.forEach(Array.from({ length: item }), () => Effect.yieldNow), group.submit(item))
    const answers = yield* Effect.forEach([0, 1, 2, 9], inTurn, { concurrency: "unbounded" })
    assert.deepStrictEqual(answers, [0, 2, 4, 18])
    assert.deepStrictEqual(batches, [[0, 1, 2], [9]])
  }))

it.effect("lets one bad item fail alone", () =>
  Effect.gen(function*() {
    const { group } = yield* make((items) => items.includes(3) ? Effect.fail(new Refused({ item: 3 })) : double(items))
    const exits = yield* Effect.forEach([1, 2, 3, 4], (item) => Effect.exit(group.submit(item)), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(exits, [
      Exit.succeed(2),
      Exit.succeed(4),
      Exit.fail(new Refused({ item: 3 })),
      Exit.succeed(8)
    ])
  }))

it.effect("survives a commit that throws", () =>
  Effect.gen(function*() {
    const { group } = yield* make((items) => items.includes(0) ? Effect.die(new Error("bug")) : double(items))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(group.submit(0))))
    assert.strictEqual(yield* group.submit(5), 10)
  }))

it.effect("says that it is full instead of growing, and takes the rest in order when there is room", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { batches, group } = yield* make((items) => Effect.andThen(Deferred.await(gate), double(items)), 2)
    const answered: Array<number> = []
    const resume = (exit: Exit.Exit<number, Refused>) => answered.push(Exit.isSuccess(exit) ? exit.value : -1)
    assert.isUndefined(group.offer(1, resume))
    yield* Effect.yieldNow
    yield* Effect.yieldNow
    const later = [2, 3, 4].map((item) => group.offer(item, resume))
    assert.deepStrictEqual(later.map((effect) => effect === undefined), [true, true, false])
    const waiting = yield* Effect.forkChild(later[2]!)
    yield* Effect.yieldNow
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(waiting)
    assert.strictEqual(yield* group.submit(5), 10)
    assert.deepStrictEqual(answered, [2, 4, 6, 8])
    assert.deepStrictEqual(batches.flat(), [1, 2, 3, 4, 5])
  }))

it.effect("commits what it was handed before it ends", () =>
  Effect.gen(function*() {
    const answered: Array<number> = []
    const { batches } = yield* Effect.scoped(Effect.gen(function*() {
      const made = yield* make(double)
      for (const item of [1, 2, 3]) {
        made.group.offer(item, (exit) => answered.push(Exit.isSuccess(exit) ? exit.value : -1))
      }
      return made
    }))
    assert.deepStrictEqual(answered, [2, 4, 6])
    assert.deepStrictEqual(batches, [[1, 2, 3]])
  }))

it.effect("settles each item once, also if it ends while items are committed one by one", () =>
  Effect.gen(function*() {
    const answered: Array<string> = []
    yield* Effect.scoped(Effect.gen(function*() {
      const { group } = yield* make((items) => {
        if (items.length > 1) return Effect.fail(new Refused({ item: 2 }))
        return items.includes(2) ? Effect.never : double(items)
      })
      for (const item of [1, 2, 3]) {
        group.offer(item, (exit) => answered.push(`${item} ${Exit.isSuccess(exit) ? "stored" : "not stored"}`))
      }
      yield* Effect.forkDetach(TestClock.adjust("1 minute"))
    }))
    assert.deepStrictEqual(answered, ["1 stored", "2 not stored", "3 not stored"])
  }))

it.effect("commits two batches beside each other, items with the same key in order", () =>
  Effect.gen(function*() {
    const committed: Array<string> = []
    let running = 0
    let together = 0
    const group = yield* Batcher.makePartitioned<string, ReadonlyArray<number>, number, never>({
      capacity: 100,
      maxBatch: 4,
      keyOf: (item) => item[0]!,
      commit: (items) =>
        Effect.gen(function*() {
          together = Math.max(together, ++running)
          // A batch of one way takes longer than those of the other.
          yield* Effect.sleep(items.includes("a0") ? "5 seconds" : "1 second")
          running--
          committed.push(...items)
          return items.map(() => 0)
        }),
      conclude: (_, results) => Effect.succeed(results)
    })
    const keys = [..."abcdefgh"]
    const items = Array.from({ length: 10 }, (_, i) => keys.map((key) => `${key}${i}`)).flat()
    const all = yield* Effect.forkChild(Effect.forEach(items, group.submit, { concurrency: "unbounded" }))
    // In steps: a batch also waits for turns between the sleeps.
    yield* Effect.replicateEffect(TestClock.adjust("1 second"), 60)
    yield* Fiber.join(all)
    assert.strictEqual(together, 2)
    assert.sameMembers(committed, items)
    for (const key of keys) {
      const ofKey = (item: string) => item.startsWith(key)
      assert.deepStrictEqual(committed.filter(ofKey), items.filter(ofKey))
    }
  }))

it.effect("never commits again when what follows the commit throws", () =>
  Effect.gen(function*() {
    const committed: Array<number> = []
    const group = yield* Batcher.makeConcluding<number, ReadonlyArray<number>, number, Refused>({
      capacity: 100,
      maxBatch: 4,
      commit: (items) =>
        Effect.sync(() => {
          committed.push(...items)
          return items
        }),
      isolates: () => true,
      conclude: () => Effect.die(new Error("bug"))
    })
    const exits = yield* Effect.forEach([1, 2, 3], (item) => Effect.exit(group.submit(item)), {
      concurrency: "unbounded"
    })
    assert.isTrue(exits.every(Exit.isFailure))
    assert.deepStrictEqual(committed, [1, 2, 3])
  }))

/** A batcher whose keys are the first letters of items, and whose batches wait for `gate`. */
const makeFair = Effect.fnUntraced(
  function*(
    options: Partial<
      Pick<
        Batcher.Options<string, never, never>,
        "capacity" | "maxBatch" | "maxWeight" | "sharedPart" | "groupOf"
      >
    >
  ) {
    const gate = yield* Latch.make(false)
    const batches: Array<ReadonlyArray<string>> = []
    const group = yield* Batcher.make<string, string, never>({
      capacity: 1000,
      maxBatch: 4,
      keyOf: (item) => item[0]!,
      commit: (items) => {
        batches.push(items)
        return Effect.as(gate.await, items)
      },
      ...options
    })
    return { batches, gate, group }
  }
)

/** Starts to submit items and lets them get into the queue. */
const start = Effect.fnUntraced(function*(submits: ReadonlyArray<Effect.Effect<string>>) {
  const fiber = yield* Effect.forkChild(Effect.all(submits, { concurrency: "unbounded" }))
  yield* Effect.replicateEffect(Effect.yieldNow, 20)
  return fiber
})

it.effect("puts an item into the next batch, however many another key has waiting", () =>
  Effect.gen(function*() {
    const { batches, gate, group } = yield* makeFair({})
    const many = yield* start(Array.from({ length: 500 }, (_, i) => group.submit(`a${i}`, 32)))
    const one = yield* start([group.submit("b0")])
    yield* gate.open
    yield* Fiber.join(one)
    yield* Fiber.join(many)
    assert.lengthOf(batches.flat(), 501)
    assert.include(batches[1]!, "b0")
    assert.deepStrictEqual(
      batches.flat().filter((item) => item !== "b0"),
      Array.from({ length: 500 }, (_, i) => `a${i}`)
    )
  }))

it.effect("a batch is no heavier than it may be", () =>
  Effect.gen(function*() {
    const { batches, gate, group } = yield* makeFair({ maxBatch: 100, maxWeight: 10 })
    const weights = [4, 4, 4, 30, 1, 1, 8]
    const fiber = yield* start(weights.map((weight, i) => group.submit(`a${i}`, weight)))
    yield* gate.open
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(batches, [["a0", "a1"], ["a2"], ["a3"], ["a4", "a5", "a6"]])
  }))

it.effect("batches are small while several groups use the queue", () =>
  Effect.gen(function*() {
    const { batches, gate, group } = yield* makeFair({ maxBatch: 8, sharedPart: 1 / 4, groupOf: (item) => item[0]! })
    const fiber = yield* start(["a0", "a1", "b0", "a2", "a3", "a4"].map((item) => group.submit(item)))
    yield* gate.open
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(batches, [["a0", "a1"], ["b0", "a2"], ["a3", "a4"]])
  }))

it.effect("a full queue makes only those wait who fill it, and their order stays", () =>
  Effect.gen(function*() {
    const { batches, gate, group } = yield* makeFair({ capacity: 6 })
    const settled: Array<string> = []
    const offer = (item: string) =>
      group.offer(item, (exit) => settled.push(Exit.isSuccess(exit) ? exit.value : "?"), 32)
    assert.isUndefined(offer("a0"))
    yield* Effect.replicateEffect(Effect.yieldNow, 20)
    const later = Array.from({ length: 8 }, (_, i) => offer(`a${i + 1}`))
    assert.deepStrictEqual(later.map((wait) => wait === undefined), [...Array(6).fill(true), false, false])
    assert.isUndefined(offer("b0"))
    assert.isDefined(offer("a9"))
    const waits = yield* Effect.forkChild(later[7]!)
    assert.isUndefined(waits.pollUnsafe())
    yield* gate.open
    yield* Fiber.join(waits)
    yield* group.submit("c0")
    assert.deepStrictEqual(settled.filter((item) => item[0] === "a"), Array.from({ length: 10 }, (_, i) => `a${i}`))
    assert.include(batches[1]!, "b0")
    // A wait that begins after the item was taken ends at once.
    yield* later[6]!
  }))
