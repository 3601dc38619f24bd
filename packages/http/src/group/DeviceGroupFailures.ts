/**
 * Failures of the routes of device groups.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchDeviceGroup = failure(
  "NoSuchDeviceGroup",
  Code.noSuchDeviceGroup,
  "The project has no such device group"
)

export const DeviceGroupNameTaken = failure("DeviceGroupNameTaken", Code.taken, "A device group has this name")

export const DeviceGroupKindMismatch = failure(
  "DeviceGroupKindMismatch",
  Code.operationUnfit,
  "The device group is dynamic and takes no devices, or it is static and takes no query"
)

export const DeviceGroupFull = failure(
  "DeviceGroupFull",
  Code.stateForbids,
  "The device group would have too many devices"
)

/** From the errors of the domain. */
export const deviceGroupFailures = {
  DeviceGroupNotFound: ({ message }: Core.DeviceGroupNotFound) => NoSuchDeviceGroup.make({ message }),
  DeviceGroupNameTaken: ({ message }: Core.DeviceGroupNameTaken) => DeviceGroupNameTaken.make({ message }),
  DeviceGroupKindMismatch: ({ message }: Core.DeviceGroupKindMismatch) => DeviceGroupKindMismatch.make({ message }),
  DeviceGroupFull: ({ message }: Core.DeviceGroupFull) => DeviceGroupFull.make({ message })
}
