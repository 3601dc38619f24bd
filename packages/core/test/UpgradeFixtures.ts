/**
 * Firmware and upgrade tasks of tests.
 */
import {
  defaultProjectId,
  Firmwares,
  type Product,
  type ProductKey,
  type UpgradeTaskDraft,
  UpgradeTasks
} from "@device-cloud/core"
import { Effect } from "effect"

/** Creates firmware of version 2.0.0. */
export const createFirmware = Effect.fnUntraced(function*(productKey: ProductKey) {
  const { firmware } = yield* (yield* Firmwares).create(defaultProjectId, productKey, {
    name: "Lamp",
    version: "2.0.0",
    ossPath: "https://example.com/firmware.bin",
    algorithms: "md5",
    hash: "93230c3bde425a9d7984a594ac55ea1e"
  })
  return firmware
})

/** Creates a task that tells all devices of the product of new firmware, and returns its id. */
export const createTask = Effect.fnUntraced(
  function*({ productKey }: Product, draft: Partial<UpgradeTaskDraft> = {}) {
    const { firmwareId } = yield* createFirmware(productKey)
    const { taskId } = yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmwareId, {
      scopeMode: "all",
      cloudPush: true,
      ...draft
    })
    return taskId
  }
)
