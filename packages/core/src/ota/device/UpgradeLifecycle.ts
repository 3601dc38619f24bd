/**
 * Ends the upgrades of devices that are deleted: their records stay as history.
 */
import { Effect, Layer } from "effect"
import type { DeviceIdentity } from "../../device/Device.ts"
import { DeviceLifecycle } from "../../device/DeviceLifecycle.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { advance } from "../task/UpgradeStateMachine.ts"

export const layer: Layer.Layer<never, never, OtaStore | DeviceLifecycle> = Layer.effectDiscard(
  Effect.gen(function*() {
    const store = yield* OtaStore
    const lifecycle = yield* DeviceLifecycle

    const endUpgrades = Effect.fnUntraced(function*(devices: ReadonlyArray<DeviceIdentity>, at: number) {
      while (true) {
        const open = yield* store.unfinished(devices.map(({ deviceId }) => deviceId))
        if (open.length === 0) return
        yield* store.save(open.map(({ record, task }) => ({
          before: record,
          after: advance(record, task, { _tag: "Cancelled", at, whole: false })
        })))
      }
    })

    yield* lifecycle.register({ stage: "feature", deleting: () => Effect.succeed(endUpgrades) })
  })
)
