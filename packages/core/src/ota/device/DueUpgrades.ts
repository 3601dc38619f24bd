/**
 * The clock of upgrades: each second, a node claims the records that are due. It
 * tells the devices of those that wait, puts off those whose window is closed or
 * for whom their task has told too many, and moves on those whose time is up.
 */
import { Array, Clock, Effect, Layer } from "effect"
import { DeviceSessions } from "../../connection/DeviceSessions.ts"
import type { DeviceId } from "../../device/Device.ts"
import * as Periodic from "../../kernel/Periodic.ts"
import { untilStored } from "../../kernel/StoreError.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { isPushed } from "../task/UpgradeStateMachine.ts"
import type { Assignment } from "../task/UpgradeTask.ts"
import { UpgradePace } from "./UpgradePace.ts"
import { UpgradePush } from "./UpgradePush.ts"
import { opensAt } from "../task/StartWindow.ts"
import { postponed, type UpgradeStep, UpgradeSteps } from "./UpgradeSteps.ts"

/** Runs the clock as long as the layer lives. Of several nodes, one acts on a record. */
export const layer: Layer.Layer<never, never, DeviceSessions | OtaStore | UpgradePace | UpgradePush | UpgradeSteps> =
  Layer
    .effectDiscard(
      Effect.suspend(() => make)
    )

/** Records that one claim takes at most. */
const claimLimit = 500
/** Milliseconds until a claimed record is due again, unless it changes: its device was connected to a node that is gone. */
const claimMillis = 5000

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const steps = yield* UpgradeSteps
  const pace = yield* UpgradePace
  const { isHere, push, pushElsewhere } = yield* UpgradePush
  /** Devices whose upgrades may have been due while they were set offline. */
  const back = new Set<DeviceId>()
  yield* (yield* DeviceSessions).listen({ reclaimed: ({ connection }) => back.add(connection.device.deviceId) })

  /** Makes the upgrades due of devices that will not report their version: they were connected all the time. */
  const resume = Effect.gen(function*() {
    const at = yield* Clock.currentTimeMillis
    for (const deviceIds of Array.chunksOf([...back], claimLimit)) {
      // A device that is claimed again from now on is looked at once more.
      for (const deviceId of deviceIds) back.delete(deviceId)
      yield* Effect.gen(function*() {
        const open = yield* store.unfinished(deviceIds)
        yield* steps.take(open.flatMap((assignment): ReadonlyArray<UpgradeStep> => {
          const { record, task } = assignment
          return record.dueAt === null && isPushed(task, record)
            ? [{ assignment, event: { _tag: "Postponed", at, until: at } }]
            : []
        }))
      }).pipe(Effect.onError(() => Effect.sync(() => deviceIds.forEach((deviceId) => back.add(deviceId)))))
    }
  })

  const tick = Effect.gen(function*() {
    yield* resume
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const due = yield* store.claimDue({ now, again: now + claimMillis, limit: claimLimit })
      const pushed = due.filter(({ record, task }) => record.status === "pending" && isPushed(task, record))
      const early = new Set(pushed.filter((claimed) => opensAt(claimed, now) > now))
      const here = new Set<Assignment>()
      const elsewhere = new Set<Assignment>()
      const late: Array<UpgradeStep> = []
      for (const claimed of pushed) {
        const isConnectedHere = isHere(claimed)
        if (early.has(claimed) || !isConnectedHere && !claimed.isConnected) continue
        const until = pace.take(claimed.task, true)
        if (until !== null) late.push({ assignment: claimed, event: { _tag: "Postponed", at: now, until } })
        else (isConnectedHere ? here : elsewhere).add(claimed)
      }
      const isLate = new Set(late.map(({ assignment }) => assignment))
      // The store may have begun them and lost its answer: they are due no more, and nobody else would tell them.
      yield* untilStored(push([...here]))
      if (elsewhere.size > 0) yield* pushElsewhere([...elsewhere])
      yield* steps.take([
        ...due.flatMap((assignment): ReadonlyArray<UpgradeStep> =>
          here.has(assignment) || elsewhere.has(assignment) || early.has(assignment) || isLate.has(assignment)
            ? []
            : [{ assignment, event: { _tag: "Due", at: now } }]
        ),
        ...late,
        ...yield* Effect.forEach(early, (assignment) => postponed(assignment, now))
      ])
      if (due.length < claimLimit) return
    }
  })

  yield* Periodic.lookingForEnds("Upgrades that are due could not be carried on", () => tick)
})
