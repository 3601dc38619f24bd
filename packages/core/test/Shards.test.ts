import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  acknowledge,
  beginAt,
  claim,
  cursorAt,
  decodeCursor,
  encodeCursor,
  moveTo,
  type Progress,
  shardCount,
  shardOf,
  startsOf
} from "../src/subscription/Shards.ts"
import type { DomainEvent } from "../src/events/DomainEvent.ts"

const lease = 10
/** A place; the form does not matter here. */
const place = (number: number) => String(number).padStart(9, "0")

const shardsOf = ({ shards }: Progress, worker: string) =>
  shards.flatMap((shard, i) => shard.worker === worker ? [i] : [])

const claimed = (progress: Progress, worker: string, now: number) => claim(progress, worker, now, lease)!

/** What workers do: who, how long after the last one, how many events they read at most, and whether they acknowledge them. */
const Steps = Schema.Array(Schema.Struct({
  worker: Schema.Literals(["a", "b", "c"]),
  after: Schema.Literals([0, 1, 4, 11]),
  limit: Schema.Literals([1, 5, 1000]),
  acknowledges: Schema.Literals(["at once", "late", "never"])
})).check(Schema.isMinLength(10), Schema.isMaxLength(40))

it.prop(
  "each event is delivered until it is acknowledged, by one worker at a time, first in order",
  [Steps],
  ([steps]) => {
    // Event n is in shard n % 16, and happens before step n.
    let progress = beginAt(place(0))
    let now = 0
    const first = new Map<number, number>()
    const acknowledged = new Set<number>()
    const delivered = new Map<string, Set<number>>()
    const late: Array<{ readonly worker: string; readonly cursor: { epoch: number; place: string } }> = []
    const read = (worker: string, end: number, limit: number) => {
      progress = claimed(progress, worker, now)
      const starts = startsOf(progress, worker, undefined)
      let count = 0
      for (let n = 1; n <= end; n++) {
        const start = starts[n % shardCount]
        if (start === undefined || place(n) <= start) continue
        assert.isFalse(acknowledged.has(n))
        delivered.set(worker, (delivered.get(worker) ?? new Set()).add(n))
        const before = first.get(n % shardCount) ?? 0
        if (n > before) {
          assert.strictEqual(n, before === 0 ? n % shardCount || shardCount : before + shardCount)
          first.set(n % shardCount, n)
        }
        if (++count === limit) return { epoch: progress.epoch, place: place(n) }
      }
      return { epoch: progress.epoch, place: place(end) }
    }
    const store = (worker: string, cursor: { epoch: number; place: string }) => {
      const held = progress.shards.map((shard) => shard.worker === worker && shard.epoch <= cursor.epoch)
      const after = acknowledge(progress, worker, cursor, now + lease)
      assert.strictEqual(after !== undefined, held.includes(true) || cursor.epoch === 0)
      if (after === undefined) return
      for (let n = 1; place(n) <= cursor.place; n++) {
        if (!held[n % shardCount] || acknowledged.has(n)) continue
        assert.isTrue(delivered.get(worker)?.has(n), "acknowledged by who has got it")
        acknowledged.add(n)
      }
      progress = after
    }
    for (const [i, { acknowledges, after, limit, worker }] of [...steps, ...steps].entries()) {
      now += after
      const cursor = read(worker, 5 * i, limit)
      if (acknowledges === "at once") store(worker, cursor)
      if (acknowledges === "late") late.push({ worker, cursor })
      if (late.length > 2) {
        const { cursor, worker } = late.shift()!
        store(worker, cursor)
      }
    }
    // Everybody but one is gone: it gets all that is left.
    now += 2 * lease
    store("d", read("d", 10 * steps.length, 1000))
    assert.strictEqual(acknowledged.size, 10 * steps.length)
  }
)

it("workers have as many shards as each other, or one more, when each has read twice", () => {
  for (let count = 1; count <= 20; count++) {
    let progress = beginAt("")
    const workers = Array.from({ length: count }, (_, i) => `worker-${i}`)
    for (const worker of [...workers, ...workers, ...workers]) progress = claimed(progress, worker, 0)
    const parts = workers.map((worker) => shardsOf(progress, worker).length)
    assert.strictEqual(parts.reduce((a, b) => a + b), shardCount)
    assert.isAtMost(Math.max(...parts) - Math.min(...parts), 1)
  }
})

it("a worker that stays keeps its shards when another one comes and goes, but for those that it gives away", () => {
  let progress = claimed(beginAt(""), "one", 0)
  progress = claimed(claimed(claimed(progress, "two", 0), "one", 5), "two", 5)
  const kept = shardsOf(progress, "one")
  assert.strictEqual(kept.length, 8)
  progress = claimed(progress, "one", 14)
  assert.deepStrictEqual(shardsOf(progress, "one"), kept)
  progress = claimed(progress, "one", 16)
  assert.strictEqual(shardsOf(progress, "one").length, shardCount)
})

it("the lease of a worker that a clock which was ahead has given holds up nobody", () => {
  const progress = claimed(beginAt(""), "gone", 3_600_000)
  assert.strictEqual(shardsOf(claimed(progress, "one", 0), "one").length, shardCount)
})

it("the sixty-fifth worker is refused", () => {
  let progress = beginAt("")
  for (let i = 0; i < 64; i++) progress = claimed(progress, `worker-${i}`, 0)
  assert.isUndefined(claim(progress, "another", 0, lease))
  assert.isDefined(claim(progress, "worker-3", 0, lease))
  assert.isDefined(claim(progress, "another", lease, lease))
})

it("who acknowledges without a shard keeps its lease, and gets none that it does not have", () => {
  const progress = claimed(beginAt(""), "one", 0)
  const cursor = { epoch: 0, place: "" }
  assert.deepStrictEqual(acknowledge(progress, "another", cursor, lease), progress)
  const renewed = acknowledge(progress, "one", cursor, 2 * lease)!
  assert.deepStrictEqual(renewed.workers, [{ worker: "one", until: 2 * lease }])
})

it("a move makes cursors of before void", () => {
  const before = claimed(beginAt(place(1)), "one", 0)
  const moved = moveTo(before, place(0))
  assert.isUndefined(acknowledge(moved, "one", { epoch: before.epoch, place: place(5) }, 0))
  const after = claimed(moved, "one", 0)
  assert.deepStrictEqual(
    startsOf(after, "one", { epoch: before.epoch, place: place(5) }),
    Array.from({ length: shardCount }, () => place(0))
  )
  const acknowledged = acknowledge(after, "one", { epoch: after.epoch, place: place(5) }, 0)!
  assert.isTrue(acknowledged.shards.every((shard) => shard.place === place(5)))
})

it("a cursor is text that ends with the id of an event", () => {
  const id = "0000000l3x80000000007500001"
  assert.strictEqual(encodeCursor({ epoch: 12, place: id }), `12-${id}`)
  assert.deepStrictEqual(decodeCursor(`12-${id}`), { epoch: 12, place: id })
  assert.deepStrictEqual(decodeCursor("3-"), { epoch: 3, place: "" })
  assert.strictEqual(cursorAt("12-", id), `12-${id}`)
  for (const text of ["", "-", id, `-${id}`, `x-${id}`, "1-x", `1-${id}0`, `1-${id}\n`]) {
    assert.isUndefined(decodeCursor(text), text)
  }
})

it("shards of device ids are spread, and stay as they are", () => {
  const shard = (deviceId: string) => shardOf({ _tag: "DeviceLifecycle", device: { deviceId } } as DomainEvent)
  assert.deepStrictEqual(["F3003cClyBNDUh7AJsum", "5BSFO1Dzczy3nAjjmFUc", "küche", ""].map(shard), [10, 2, 12, 5])
  const counts = Array.from({ length: shardCount }, () => 0)
  for (let i = 0; i < 16_000; i++) counts[shard(`device-${i}`)]!++
  assert.isAbove(Math.min(...counts), 800)
  assert.isBelow(Math.max(...counts), 1200)
  assert.strictEqual(shardOf({ _tag: "SceneExecuted", device: null } as DomainEvent), 0)
})
