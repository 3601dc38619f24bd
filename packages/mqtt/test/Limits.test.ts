import { assert, it } from "@effect/vitest"
import { complete } from "../src/Limits.ts"

it("limits that are undefined are those that are not given", () => {
  assert.deepStrictEqual(complete({ connections: 50, unauthenticated: 20 }).reservedConnections, 5)
  assert.deepStrictEqual(
    complete({ unauthenticated: undefined, connectTime: undefined } as object),
    complete()
  )
})
