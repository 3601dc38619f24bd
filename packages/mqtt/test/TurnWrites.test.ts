/**
 * When what is written to streams leaves.
 */
import { Turns } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Duplex } from "node:stream"
import { TurnWrites } from "../src/protocol/TurnWrites.ts"

const large = Buffer.alloc(20_000)

/** Rounds of an event loop whose turns end as soon as something has run, and streams that say what leaves. */
const make = () => {
  const rounds: Array<() => void> = []
  let now = 0
  const writes = new TurnWrites(new Turns({ now: () => now++ * 10, afterOthers: (run) => void rounds.push(run) }))
  const left: Array<string> = []
  const open = (name: string) =>
    new Duplex({
      read() {},
      writev(chunks, done) {
        left.push(`${name} ${chunks.reduce((sum, { chunk }) => sum + (chunk as Buffer).length, 0)}`)
        done()
      }
    })
  return { left, open, round: () => rounds.splice(0).forEach((run) => run()), writes }
}

const nextTick = () => new Promise<void>((resolve) => process.nextTick(resolve))

it("large outputs leave one in a turn, by project, and small ones at once", async () => {
  const { left, open, round, writes } = make()
  const [a, b, c, small] = ["a", "b", "c", "small"].map(open) as [Duplex, Duplex, Duplex, Duplex]
  writes.write(a, large, "attacker", "a")
  writes.write(a, large, "attacker", "a")
  writes.write(b, large, "attacker", "b")
  writes.write(c, large, "other", "c")
  for (let i = 0; i < 3; i++) writes.write(small, Buffer.alloc(1000), "other", "small")
  await nextTick()
  assert.deepStrictEqual(left, ["a 40000", "small 3000"])
  // What comes meanwhile leaves with what waits.
  writes.write(b, Buffer.alloc(1), "attacker", "b")
  round()
  round()
  assert.deepStrictEqual(left.slice(2).sort(), ["b 20001", "c 20000"])
})

it("a stream that ends while its output waits sends it first, and one that is destroyed sends nothing", async () => {
  const { left, open, round, writes } = make()
  const [first, ending, gone] = ["first", "ending", "gone"].map(open) as [Duplex, Duplex, Duplex]
  for (const stream of [first, ending, gone]) writes.write(stream, large, "p", "d")
  await nextTick()
  ending.end()
  gone.destroy()
  assert.deepStrictEqual(left, ["first 20000", "ending 20000"])
  round()
  round()
  assert.deepStrictEqual(left, ["first 20000", "ending 20000"])
})
