import { emptyShadow, UplinkStore } from "@device-cloud/core"
import { Plan, run, type StoreChange } from "@device-cloud/testing/simulation"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"

const plan = Plan.make({ seed: 1, devices: 12, minutes: 20, nodes: 2 })

/** Says of every tenth batch that it is stored, and stores nothing. */
const losesReports: StoreChange = Layer.effect(
  UplinkStore,
  Effect.map(UplinkStore, (store) => {
    let batches = 0
    return UplinkStore.of({
      commit: (batch) =>
        ++batches % 10 === 0
          ? Effect.sync(() =>
            batch.devices.map(({ deviceId, update }) => Option.some(update(emptyShadow(deviceId))[0]))
          )
          : store.commit(batch)
    })
  })
)

describe("a fleet in virtual time", () => {
  it("lives the same life twice from the same seed, and another one from another seed", () => {
    const first = run(plan)
    assert.deepStrictEqual(run(plan), first)
    assert.isAbove(first.counts.reports, 50)
    assert.deepStrictEqual(first.violations, [])
    assert.notStrictEqual(run({ ...plan, seed: 2 }).digest, first.digest)
  })

  it("finds a report that is acknowledged and not stored", () => {
    const { violations } = run(plan, { stores: losesReports })
    assert.include(violations.map(({ invariant }) => invariant), "acknowledged means stored")
  })
})
