import { expectRandom, reportRandom, unbound } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"

const minutes = 60_000

describe("the random that a device reports", () => {
  it("counts whatever it is, the latest one, while the cloud has made none", () => {
    const first = reportRandom(unbound, "abcdefgh", 0)!
    assert.strictEqual(first.reported, "abcdefgh")
    assert.strictEqual(reportRandom(first, "ijklmnop", 0)?.reported, "ijklmnop")
  })

  it("counts only when it is the one that the cloud has made, for ten minutes", () => {
    const expecting = expectRandom("abcdefgh", 0)
    assert.isNull(expecting.reported)
    assert.isUndefined(reportRandom(expecting, "ijklmnop", 10 * minutes - 1))
    const reported = reportRandom(expecting, "abcdefgh", 10 * minutes - 1)!
    assert.strictEqual(reported.reported, "abcdefgh")
    assert.isUndefined(reportRandom(reported, "ijklmnop", 10 * minutes - 1))
    assert.deepStrictEqual(reportRandom(reported, "ijklmnop", 10 * minutes), { reported: "ijklmnop", expected: null })
  })
})
