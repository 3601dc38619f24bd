/**
 * Why a device is, or is not, being upgraded (decisions, section 10). Pure.
 */
import type { DeviceStatus } from "../../device/Device.ts"
import { isReleased } from "./UpgradeStateMachine.ts"
import type { Assignment } from "./UpgradeTask.ts"

export interface Diagnosis {
  readonly reason:
    | "no-task"
    | "awaiting-confirmation"
    | "offline"
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
  readonly assignment: Assignment | undefined
  readonly currentVersion: string
}

export const explain = (
  assignment: Assignment | undefined,
  deviceStatus: DeviceStatus,
  at: number
): Pick<Diagnosis, "reason" | "message"> => {
  if (assignment === undefined) return { reason: "no-task", message: "No task is for this device and module" }
  const { record, task } = assignment
  const of = `Task ${task.taskId} to version ${task.version}`
  switch (record.status) {
    case 3:
      return { reason: "succeeded", message: `${of} has succeeded` }
    case 4:
      return record.reason === "timed out"
        ? { reason: "timed-out", message: `${of}: the device took longer than ${task.timeout} seconds` }
        : { reason: "failed", message: `${of} has failed: ${record.reason}` }
    case 5:
      return { reason: "cancelled", message: `${of} was cancelled` }
    case 2:
      return { reason: "upgrading", message: `${of}: the device is at ${record.step} percent` }
  }
  if (!isReleased(task, record)) return { reason: "awaiting-confirmation", message: `${of} awaits confirmation` }
  if (record.failures > 0 && record.dueAt !== null && record.dueAt > at) {
    return { reason: "retry-later", message: `${of} failed (${record.reason}) and is tried again later` }
  }
  if (deviceStatus !== "online") return { reason: "offline", message: `${of} waits until the device is connected` }
  if (record.dueAt !== null && record.dueAt > at) {
    return { reason: "rate-limited", message: `${of} tells ${task.maximumPerMinute} devices a minute; this one later` }
  }
  return { reason: "waiting-for-device", message: `${of} waits for the device to ask, or to report its version` }
}
