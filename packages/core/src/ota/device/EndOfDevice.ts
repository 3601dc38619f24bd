/**
 * What becomes of the upgrades of a device that is removed: its records stay as
 * history, and end.
 */
import { Clock, Effect } from "effect"
import type { DeviceId } from "../../device/Device.ts"
import type { OtaStore } from "../task/OtaStore.ts"
import { advance } from "../task/UpgradeStateMachine.ts"

export const endUpgrades = Effect.fnUntraced(function*(
  store: OtaStore["Service"],
  deviceIds: ReadonlyArray<DeviceId>
) {
  const at = yield* Clock.currentTimeMillis
  while (true) {
    const open = yield* store.unfinished(deviceIds)
    if (open.length === 0) return
    yield* store.save(open.map(({ record, task }) => ({
      before: record,
      after: advance(record, task, { _tag: "Cancelled", at, whole: false })
    })))
  }
})
