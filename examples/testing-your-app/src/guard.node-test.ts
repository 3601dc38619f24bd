/**
 * The app, tested with node:test on a cloud of its own.
 */
import { TestCloud } from "@device-cloud/testing"
import assert from "node:assert/strict"
import { test } from "node:test"
import { guardLamps } from "./guard.ts"

test("a lamp that is too warm is switched off, any other is left alone", async () => {
  await using cloud = await TestCloud.start()
  const stop = new AbortController()
  const guard = guardLamps(cloud.withSignal(stop.signal))
  const switched: Array<unknown> = []
  const lamp = await cloud.connect(await cloud.createDevice(), { on: { set: (values) => void switched.push(values) } })

  await lamp.postProperties({ temperature: 25 })
  await cloud.advance("1 minute")
  assert.deepEqual(switched, [])

  await lamp.postProperties({ temperature: 31.5 })
  await cloud.advance("1 minute")
  assert.deepEqual(switched, [{ power: 0 }])

  stop.abort()
  await assert.rejects(guard, { name: "AbortError" })
})
