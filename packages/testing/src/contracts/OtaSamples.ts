/**
 * Firmware, tasks and records that contracts store.
 */
import {
  type Device,
  type Firmware,
  type NewFirmware,
  type NewTask,
  OtaStore,
  type OtaTask,
  type Product,
  type RecordStatus,
  rolloutDelay,
  type TaskCreated,
  type UpgradeRecord,
  type UpgradeTask
} from "@device-cloud/core"
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { epoch, insertDevices, insertProduct, newDevice } from "./Samples.ts"

export const insertFirmware = Effect.fnUntraced(
  function*({ productKey, projectId }: Product, fields: Partial<Firmware> = {}) {
    const draft: NewFirmware = {
      projectId,
      productKey,
      name: "Thermostat",
      version: "2.0.0",
      ossPath: "https://example.com/firmware.bin",
      algorithms: "md5",
      hash: "93230c3bde425a9d7984a594ac55ea1e",
      sha256: "",
      signed: null,
      size: 1000,
      remark: "",
      module: "default",
      status: "unverified",
      createdAt: epoch,
      updatedAt: epoch,
      ...fields
    }
    const stored = yield* (yield* OtaStore).insertFirmware(draft)
    assert.isObject(stored)
    const firmware = stored as Firmware
    assert.deepStrictEqual(firmware, { ...draft, firmwareId: firmware.firmwareId })
    return firmware
  }
)

export const newTask = (firmware: Firmware, fields: Partial<NewTask> = {}): NewTask => ({
  kind: "upgrade",
  projectId: firmware.projectId,
  productKey: firmware.productKey,
  firmwareId: firmware.firmwareId,
  module: firmware.module,
  version: firmware.version,
  upgradeType: "static",
  upgradePolicy: "push",
  scopeMode: "all",
  isDynamic: false,
  timeout: 60,
  needAppConfirm: false,
  isAppConfirmed: false,
  downloadProtocol: "https",
  maximumPerMinute: 60,
  retryCount: 0,
  retryInterval: 600,
  abortThresholdPercent: 0,
  abortMinExecuted: 1,
  stages: [],
  stage: 1,
  stageSuccessPercent: 0,
  startWindow: null,
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

export const created = (outcome: TaskCreated) => {
  assert.strictEqual(outcome._tag, "Created")
  return outcome as TaskCreated & { readonly _tag: "Created" }
}

export const upgradeTask = (task: OtaTask) => {
  assert.strictEqual(task.kind, "upgrade")
  return task as UpgradeTask
}

export const prepare = Effect.fnUntraced(function*(count: number) {
  const product = yield* insertProduct
  const devices = yield* insertDevices(product, Array.from({ length: count }, () => newDevice()))
  const firmware = yield* insertFirmware(product)
  return { product, devices, firmware }
})

export const all = { page: 1, pageSize: 100 }

export const recordOf = ({ deviceId }: Device, taskId: number) =>
  Effect.flatMap(
    OtaStore,
    (store) => Effect.map(store.record(deviceId, taskId), (found) => Option.getOrThrow(found).record)
  )

/** When so many records of a task are due, 60 in a minute. */
export const rollout = (taskId: number, firstDue: number, count: number) =>
  Array.from({ length: count }, (_, place) => firstDue + Math.floor(rolloutDelay(taskId, place, 60)))

export const changed = (before: UpgradeRecord, status: RecordStatus, dueAt: number | null = null) => ({
  before,
  after: { ...before, status, dueAt, step: 10, updatedAt: epoch + 5, revision: before.revision + 1 }
})
