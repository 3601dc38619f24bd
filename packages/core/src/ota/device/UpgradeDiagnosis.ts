/**
 * Why the cloud is, or is not, upgrading a device. Pure. See
 * docs/api/firmware.md.
 */
import type { DeviceStatus } from "../../device/Device.ts"
import { stageCount } from "../task/Stages.ts"
import { opensAt } from "../task/StartWindow.ts"
import { isReleased, timedOut } from "../task/UpgradeStateMachine.ts"
import type { Assignment } from "../task/UpgradeTask.ts"

export interface Diagnosis {
  readonly reason:
    | "no-task"
    | "awaiting-stage"
    | "awaiting-confirmation"
    | "offline"
    | "window-closed"
    | "rate-limited"
    | "retry-later"
    | "waiting-for-device"
    | "upgrading"
    | "succeeded"
    | "failed"
    | "timed-out"
    | "cancelled"
  /** A sentence. */
  readonly message: string
  /** What the diagnosis is about; undefined: no task is for the device and module. */
  readonly assignment: Assignment | undefined
  /** The version of the module that the device has reported; empty: none. */
  readonly currentVersion: string
}

/** The reason for the state of `assignment`, and a sentence that tells it. `at`: Unix milliseconds. */
export const explain = (
  assignment: Assignment | undefined,
  deviceStatus: DeviceStatus,
  at: number
): Pick<Diagnosis, "reason" | "message"> => {
  if (assignment === undefined) return { reason: "no-task", message: "No task is for this device and module" }
  const { record, task } = assignment
  const of = `Task ${task.taskId} to version ${task.version}`
  switch (record.status) {
    case "succeeded":
      return { reason: "succeeded", message: `${of} has succeeded` }
    case "failed":
      return record.reason === timedOut
        ? { reason: "timed-out", message: `${of}: the device took longer than ${task.timeout} seconds` }
        : { reason: "failed", message: `${of} has failed: ${record.reason}` }
    case "cancelled":
      return { reason: "cancelled", message: `${of} was cancelled` }
    case "upgrading":
      return { reason: "upgrading", message: `${of}: the device is at ${record.step} percent` }
    case "pending":
      return explainPending(assignment, deviceStatus, at, of)
  }
}

const explainPending = (
  assignment: Assignment,
  deviceStatus: DeviceStatus,
  at: number,
  of: string
): Pick<Diagnosis, "reason" | "message"> => {
  const { record, task } = assignment
  if (record.isHeld) {
    return {
      reason: "awaiting-stage",
      message: `${of} is at stage ${task.stage} of ${stageCount(task)}; the device is of a later one`
    }
  }
  if (!isReleased(task, record)) return { reason: "awaiting-confirmation", message: `${of} awaits confirmation` }
  if (record.failures > 0 && record.dueAt !== null && record.dueAt > at) {
    return { reason: "retry-later", message: `${of} failed (${record.reason}) and is tried again later` }
  }
  const opening = opensAt(assignment, at)
  if (opening > at) {
    return { reason: "window-closed", message: `${of} may begin from ${new Date(opening).toISOString()} on` }
  }
  if (deviceStatus !== "online") return { reason: "offline", message: `${of} waits until the device is connected` }
  if (record.dueAt !== null && record.dueAt > at) {
    return { reason: "rate-limited", message: `${of} tells ${task.maximumPerMinute} devices a minute; this one later` }
  }
  return { reason: "waiting-for-device", message: `${of} waits for the device to ask, or to report its version` }
}
