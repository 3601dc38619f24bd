import { assert, it } from "@effect/vitest"
import { isOlder } from "../src/ota/firmware/VersionOrder.ts"

it.each<readonly [string, string, boolean]>([
  ["1.0.9", "1.1.0", true],
  ["1.9.0", "1.10.0", true],
  ["0.9.9", "1.0.0", true],
  ["1.1.0", "1.1.0", false],
  ["1.1.1", "1.1.0", false],
  ["2.0.0", "1.9.9", false],
  ["1.1.0-rc.1", "1.1.0", true],
  ["1.1.0", "1.1.0-rc.1", false],
  ["1.1.0-rc.1", "1.1.0-rc.2", false],
  ["1.1.0.5", "1.1.0", false],
  ["1.0.0-rc.1", "1.1.0-rc.1", true],
  // Nobody knows.
  ["v1.0.0", "1.1.0", false],
  ["1.0", "1.1.0", false],
  ["", "1.1.0", false]
])("%j is older than %j: %s", (version, target, expected) => {
  assert.strictEqual(isOlder(version, target), expected)
})
