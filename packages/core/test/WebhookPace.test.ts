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

  it("counts an address, whatever names stand for it, for each project and for all together", () => {
    const pace = makeWebhookPace({ rate: 1, burst: 2, atOnce: 100 })
    const from = (project: number, ...addresses: ReadonlyArray<string>) => ({
      projectId: ProjectId.make(`project${project}`),
      addresses
    })
    const turns = Array.from({ length: 4 }, () => pace.take(from(0, "192.0.2.1:443"), start, false))
    assert.deepStrictEqual(turns, [null, null, start + 1000, start + 2000])
    assert.isNull(pace.take(from(0, "192.0.2.1:80"), start, false))
    // One of several addresses is enough.
    assert.isNotNull(pace.take(from(0, "192.0.2.9:443", "192.0.2.1:443"), start, false))
    // Ten projects have their whole rate; more share it.
    const others = Array.from({ length: 12 }, (_, i) => [
      pace.take(from(i + 1, "192.0.2.1:443"), start, false),
      pace.take(from(i + 1, "192.0.2.1:443"), start, false)
    ]).flat()
    assert.strictEqual(others.filter((turn) => turn === null).length, 18)
  })

  it("gives projects equal parts of an address that gets as much as it may", () => {
    const pace = makeWebhookPace({ rate: 10, burst: 10, atOnce: 10 })
    const waiting = [3000, 30].flatMap((count, project) =>
      Array.from({ length: count }, () => ({ project, at: start, hasWaited: false }))
    )
    const crowd = Array.from({ length: 20 }, (_, i) => 2 + i).flatMap((project) =>
      Array.from({ length: 100 }, () => ({ project, at: start, hasWaited: false }))
    )
    const queue = [...waiting, ...crowd]
    let quietDone = 0
    // In one line, those before would take half a minute.
    for (let now = start; quietDone < 30 && now < start + 15_000; now += 20) {
      for (const request of queue.filter(({ at }) => at <= now)) {
        const target = { projectId: ProjectId.make(`project${request.project}`), addresses: ["192.0.2.1:443"] }
        const turn = pace.take(target, now, request.hasWaited)
        if (turn !== null) Object.assign(request, { at: turn, hasWaited: true })
        else {
          queue.splice(queue.indexOf(request), 1)
          if (request.project === 1) quietDone++
          pace.done(target)
        }
      }
    }
    assert.strictEqual(quietDone, 30)
  })

  it("remembers so many lanes, and forgets the one that was used least lately and has nothing under way", () => {
    const pace = makeWebhookPace({ rate: 0.001, burst: 1, atOnce: 10 }, 3)
    const host = (name: string) => ({ projectId, host: name })
    for (const name of ["a", "b", "c"]) assert.isNull(pace.take(host(name), start, false))
    for (const name of ["b", "c"]) pace.done(host(name))
    assert.isNotNull(pace.turn(host("b"), start))
    assert.isNull(pace.take(host("d"), start, false))
    assert.deepStrictEqual(["a", "b", "c"].map((name) => pace.turn(host(name), start) === null), [false, true, false])
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
