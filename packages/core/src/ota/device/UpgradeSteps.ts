/**
 * Stores what happens to devices in tasks, with its events.
 */
import { Context, Effect, Layer, Option, Random } from "effect"
import type { DomainEvent } from "../../events/DomainEvent.ts"
import { Feed } from "../../feed/Feed.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { advance, type UpgradeEvent } from "../task/UpgradeStateMachine.ts"
import { opensAt, turnAfter } from "../task/StartWindow.ts"
import type { Assignment } from "../task/UpgradeTask.ts"

/** An event, and the assignment that it happens to. */
export interface UpgradeStep {
  readonly assignment: Assignment
  readonly event: UpgradeEvent
}

/** Puts a device off that may not begin at `at` until its window opens. */
export const postponed = (assignment: Assignment, at: number): Effect.Effect<UpgradeStep> =>
  Effect.map(Random.next, (chance) => ({
    assignment,
    event: { _tag: "Postponed", at, until: turnAfter(assignment.task, opensAt(assignment, at), chance) }
  }))

export class UpgradeSteps extends Context.Service<UpgradeSteps, {
  /**
   * Advances the record of each step, stores those that change and records an
   * `UpgradeProgressed` event for each. If somebody has changed a record since it
   * was read, `take` advances the newer record instead. Returns the assignments
   * afterwards, in the order of the steps. A record occurs in at most one step.
   */
  readonly take: (steps: ReadonlyArray<UpgradeStep>) => Effect.Effect<ReadonlyArray<Assignment>, StoreError>
}>()("@device-cloud/core/ota/device/UpgradeSteps") {
  static readonly layer: Layer.Layer<UpgradeSteps, never, OtaStore | Feed> = Layer.effect(
    UpgradeSteps,
    Effect.suspend(() => make)
  )
}

const eventOf = ({ record, task }: Assignment): DomainEvent => ({
  _tag: "UpgradeProgressed",
  device: {
    projectId: task.projectId,
    productKey: task.productKey,
    deviceId: record.deviceId,
    deviceName: record.deviceName
  },
  at: record.updatedAt,
  taskId: task.taskId,
  module: task.module,
  version: task.version,
  status: record.status,
  step: record.step,
  reason: record.reason
})

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const feed = yield* Feed

  const take = Effect.fnUntraced(function*(steps: ReadonlyArray<UpgradeStep>) {
    const results: Array<Assignment> = steps.map(({ assignment }) => assignment)
    let pending = steps.map((step, place) => ({ ...step, place }))
    while (pending.length > 0) {
      const changes = pending.flatMap(({ assignment, event, place }) => {
        const after = advance(assignment.record, assignment.task, event)
        return after === assignment.record ? [] : [{ before: assignment.record, after, place, event }]
      })
      if (changes.length === 0) break
      const { saved } = yield* feed.commit(
        store.save(changes),
        ({ saved }) =>
          changes.flatMap(({ after, place }, i) =>
            saved[i] === true ? [eventOf({ ...results[place]!, record: after })] : []
          )
      )
      const again: typeof pending = []
      for (let i = 0; i < changes.length; i++) {
        const { after, event, place } = changes[i]!
        if (saved[i] === true) {
          results[place] = { ...results[place]!, record: after }
          continue
        }
        const newer = Option.getOrUndefined(yield* store.record(after.deviceId, after.taskId))
        if (newer === undefined) continue
        results[place] = newer
        again.push({ assignment: newer, event, place })
      }
      pending = again
    }
    return results
  })

  return UpgradeSteps.of({ take })
})
