import { makeWebhookPace, ProjectId } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"

const projectId = ProjectId.make("project")
const target = { projectId, host: "victim.example" }
const start = Date.UTC(2026, 0, 1)

describe("the pace of webhooks", () => {
  it("lets a burst through, and then one after the other at the rate", () => {
    const pace = makeWebhookPace({ rate: 10, burst: 3, atOnce: 100 })
    const turns = Array.from({ length: 6 }, () => pace.take(target, start, false))
    assert.deepStrictEqual(turns, [null, null, null, start + 100, start + 200, start + 300])
    assert.strictEqual(pace.turn(target, start), start + 400)
    // Whoever has waited goes when its turn comes. Whoever comes later queues behind.
    assert.isNull(pace.take(target, start + 100, true))
    assert.strictEqual(pace.take(target, start + 200, false), start + 400)
    assert.isNull(pace.take(target, start + 200, true))
  })

  it("lets only so many be under way, and others go when these are done", () => {
    const pace = makeWebhookPace({ rate: 10, burst: 100, atOnce: 2 })
    assert.deepStrictEqual(Array.from({ length: 3 }, () => pace.take(target, start, false)), [
      null,
      null,
      start + 100
    ])
    assert.strictEqual(pace.take(target, start + 100, true), start + 200)
    pace.done(target)
    assert.isNull(pace.take(target, start + 200, true))
  })

  it("counts each project and each host by itself", () => {
    const pace = makeWebhookPace({ rate: 1, burst: 1, atOnce: 1 })
    assert.isNull(pace.take(target, start, false))
    assert.isNotNull(pace.take(target, start, false))
    assert.isNull(pace.take({ ...target, host: "other.example" }, start, false))
    assert.isNull(pace.take({ ...target, projectId: ProjectId.make("other") }, start, false))
    assert.isNull(pace.turn({ ...target, host: "third.example" }, start))
  })

  it("sends everything that waits, never faster than the rate allows", () => {
    const [rate, burst] = [10, 5]
    const pace = makeWebhookPace({ rate, burst, atOnce: 4 })
    const waiting = Array.from({ length: 300 }, () => ({ at: start, hasWaited: false }))
    const sent: Array<number> = []
    for (let now = start; waiting.length > 0 && now < start + 600_000; now += 50) {
      for (const request of waiting.filter(({ at }) => at <= now)) {
        const turn = pace.take(target, now, request.hasWaited)
        if (turn === null) {
          sent.push(now)
          waiting.splice(waiting.indexOf(request), 1)
          pace.done(target)
        } else Object.assign(request, { at: turn, hasWaited: true })
      }
    }
    assert.strictEqual(sent.length, 300)
    sent.forEach((first, place) => {
      const within = sent.slice(place).filter((at) => at < first + 1000).length
      assert.isAtMost(within, burst + rate)
    })
  })
})
