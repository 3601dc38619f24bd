import assert from "node:assert/strict"
import test from "node:test"
import { tellLamp } from "./lamp.mjs"

test("a lamp does what it is told", async () => {
  assert.deepEqual(await tellLamp(), [1, "The cloud is closed"])
})
