import { assert, it } from "@effect/vitest"
import { EventChunk } from "../src/events/EventChunk.ts"

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

it("a chunk has the bytes of its events, made once, and of those after a place", () => {
  const chunk = new EventChunk()
  for (const place of ["a", "c", "e"]) chunk.add(place, `${place}ü `)
  assert.strictEqual(chunk.last, "e")
  assert.strictEqual(chunk.length, 9)
  assert.strictEqual(text(chunk.after("")), "aü cü eü ")
  assert.strictEqual(chunk.after(""), chunk.after("0"))
  assert.strictEqual(text(chunk.after("a")), "cü eü ")
  assert.strictEqual(text(chunk.after("d")), "eü ")
})
