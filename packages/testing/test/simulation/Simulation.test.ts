import { Plan, run, shrink, type StoreChange, testOf } from "@device-cloud/testing/simulation"
import { assert, describe, it } from "@effect/vitest"
import * as Mutations from "./Mutations.ts"

const plan = Plan.make({ seed: 3, devices: 12, minutes: 4, nodes: 2 })

/** Nodes that work: most is promised of them. */
const calm = { ...plan, faults: plan.faults.filter(({ breaks }) => breaks === "network") }

describe("a fleet in virtual time", () => {
  it("lives the same life twice from the same seed, and another one from another seed", () => {
    const first = run(plan)
    assert.deepStrictEqual(run(plan), first)
    assert.deepStrictEqual(first.violations, [])
    for (const [what, count] of Object.entries(first.counts)) assert.isAbove(count, 0, what)
    assert.notStrictEqual(run({ ...plan, seed: 4, minutes: 1 }).digest, first.digest)
  })

  const broken: ReadonlyArray<readonly [invariant: string, stores: StoreChange]> = [
    ["acknowledged means stored", Mutations.losesReports],
    ["shadow versions grow", Mutations.turnsVersionsBack],
    ["a command has one end", Mutations.forgetsAnswers],
    ["a command ends for a reason", Mutations.turnsAnswers],
    ["status versions grow by one", Mutations.skipsVersions],
    ["a command that was dealt with does not come again", Mutations.revivesCommands],
    ["commands come in order", Mutations.doublesCommands],
    ["presence agrees with connections", Mutations.forgetsOffline],
    ["no connected device goes offline", Mutations.forgetsHeartbeats],
    ["an upgrade has one end", Mutations.forgetsUpgrades],
    ["an upgrade succeeds by the device's word", Mutations.praisesUpgrades],
    ["a campaign counts its devices", Mutations.miscountsCampaigns],
    ["nothing fails", Mutations.refusesOffline],
    ["scenes fire when they should", Mutations.forgetsReactions],
    ["nothing leaks between projects", Mutations.mixesProjects]
  ]
  it.each(broken)("finds where it does not hold that %s", (invariant, stores) => {
    const { violations } = run(calm, { stores })
    assert.include(violations.map((violation) => violation.invariant), invariant)
  })

  it("shrinks to the shortest history that fails, as a test", () => {
    const options = { stores: Mutations.mixesProjects }
    const long = Plan.make({ seed: 3, devices: 2, minutes: 1, nodes: 1 })
    const shrunk = shrink(long, run(long, options), options)
    assert.strictEqual(shrunk.plan.devices.length, 1)
    assert.deepStrictEqual(shrunk.plan.steps.map(({ act }) => act), ["trespass"])
    assert.deepStrictEqual(shrunk.plan.faults, [])
    const test = testOf(shrunk)
    assert.match(test, /steps: \[\n {6}\{ at: \d+, act: "trespass", device: \d \}\n {4}\],\n {4}faults: \[\]/)
    assert.deepStrictEqual(run(shrunk.plan, options).digest, shrunk.outcome.digest)
  })
})
