/**
 * Ends the upgrades of devices that are deleted: their records stay as history.
 */
import { Clock, Effect, Layer } from "effect"
import { DeviceLifecycle } from "../../device/DeviceLifecycle.ts"
import * as Periodic from "../../kernel/Periodic.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { advance } from "../task/UpgradeStateMachine.ts"
import type { Assignment } from "../task/UpgradeTask.ts"

/**
 * Ends them when devices are deleted. While it lives, it also looks for those that
 * nobody has ended: a node has deleted their devices, and then died or lost the store.
 */
export const layer: Layer.Layer<never, never, OtaStore | DeviceLifecycle> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

const lookEvery = "1 hour"
/** Records that are ended at once: some milliseconds. */
const limit = 500

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const lifecycle = yield* DeviceLifecycle

  /** Cancels all records that `find` finds, until it finds none. */
  const endAll = Effect.fnUntraced(
    function*(find: Effect.Effect<ReadonlyArray<Assignment>, StoreError>, at: number) {
      while (true) {
        const open = yield* find
        if (open.length === 0) return
        yield* store.save(open.map(({ record, task }) => ({
          before: record,
          after: advance(record, task, { _tag: "Cancelled", at, whole: false })
        })))
      }
    }
  )

  yield* lifecycle.register({
    stage: "feature",
    deleting: () =>
      Effect.succeed((devices, at) => endAll(store.unfinished(devices.map(({ deviceId }) => deviceId)), at))
  })
  yield* Clock.currentTimeMillis.pipe(
    Effect.flatMap((now) => endAll(store.orphaned(limit), now)),
    Effect.catchCause((cause) => Effect.logWarning("Upgrades of deleted devices could not be ended", cause)),
    Periodic.every(lookEvery)
  )
})
