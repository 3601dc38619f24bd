/**
 * A test for `node:test`, which TestCloud.test.ts runs.
 */
import { TestCloud } from "@device-cloud/testing"
import assert from "node:assert/strict"
import test from "node:test"

test("a lamp does what it is told", async () => {
  await using cloud = await TestCloud.start()
  const device = await cloud.createDevice()
  await cloud.connect(device, { on: { set: () => {} } })
  await cloud.commands.setProperties("default", device.deviceId, { power: 1 })
  await cloud.advance("1 second")
  const { shadow } = await cloud.shadows.get("default", device.deviceId)
  assert.equal(shadow.reported["power"]?.value, 1)
})
