import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { EventChunk } from "../src/events/EventChunk.ts"
import { EventListener } from "../src/events/EventListener.ts"

it.effect("a stream with nothing to tell says how far it is, once it has been offered everything", () =>
  Effect.gen(function*() {
    let place = "1"
    const listener = new EventListener(
      { total: 0 },
      { read: () => Effect.die("it is not behind"), offeredFrom: () => place },
      { after: "1", beginning: [] }
    )
    /** What the client gets of this. */
    const told = Effect.fnUntraced(function*(tell: () => void) {
      const reading = yield* Effect.forkChild(listener.next, { startImmediately: true })
      tell()
      return new TextDecoder().decode(yield* Fiber.join(reading))
    })
    assert.strictEqual(yield* told(() => listener.beat(true)), ":\n\n")
    place = "5"
    assert.strictEqual(yield* told(() => listener.beat(false)), ":\n\n")
    assert.strictEqual(yield* told(() => listener.beat(true)), "id: 5\n\n")
    assert.strictEqual(yield* told(() => listener.beat(true)), ":\n\n")
    const chunk = new EventChunk()
    chunk.add("7", "event\n\n")
    const event = yield* told(() => {
      listener.offer(chunk)
      listener.flush()
    })
    assert.strictEqual(event, "event\n\n")
  }))
