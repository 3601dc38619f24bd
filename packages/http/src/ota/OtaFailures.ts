/**
 * Failures of the routes of firmware and upgrades.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure, invalidParameter } from "../Failure.ts"

export const NoSuchFirmware = failure("NoSuchFirmware", Code.noSuchFirmware, "The project has no such firmware")

export const FirmwareState = failure("FirmwareState", Code.stateForbids, "The state of the firmware forbids it")

export const FirmwareVersionTaken = failure(
  "FirmwareVersionTaken",
  Code.taken,
  "The product has a firmware of this version for the module"
)

export const NoSuchTask = failure("NoSuchTask", Code.noSuchTask, "The project has no such task")

export const DeviceNotInTask = failure("DeviceNotInTask", Code.noSuchTask, "The device is not in the task")

export const TaskState = failure("TaskState", Code.stateForbids, "The state of the task forbids it")

export const DeviceIsUpgrading = failure(
  "DeviceIsUpgrading",
  Code.deviceIsUpgrading,
  "A device has an unfinished task for the module"
)

/** From the errors of the domain. */
export const otaFailures = {
  FirmwareNotFound: ({ message }: Core.FirmwareNotFound) => NoSuchFirmware.make({ message }),
  FirmwareState: ({ message }: Core.FirmwareState) => FirmwareState.make({ message }),
  FirmwareVersionTaken: ({ module, productKey, version }: Core.FirmwareVersionTaken) =>
    FirmwareVersionTaken.make({
      message: `version: product ${productKey} has a firmware ${version} for module ${module}`
    }),
  TaskNotFound: ({ message }: Core.TaskNotFound) => NoSuchTask.make({ message }),
  RecordNotFound: ({ message }: Core.RecordNotFound) => DeviceNotInTask.make({ message }),
  TaskState: ({ message }: Core.TaskState) => TaskState.make({ message }),
  DeviceIsUpgrading: ({ message }: Core.DeviceIsUpgrading) => DeviceIsUpgrading.make({ message }),
  DevicesNotOfProduct: ({ deviceIds, productKey }: Core.DevicesNotOfProduct) =>
    invalidParameter(deviceIds.map((deviceId) => ({
      path: ["device_ids"],
      message: `${deviceId} is no device of product ${productKey}`
    })))
}
