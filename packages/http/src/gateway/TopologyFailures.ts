/**
 * Failures of the routes of gateways and their sub-devices.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NotAGateway = failure("NotAGateway", Code.operationUnfit, "The device is no gateway")

export const NotASubDevice = failure(
  "NotASubDevice",
  Code.operationUnfit,
  "Devices of the product are no sub-devices"
)

export const NoSuchAddSession = failure(
  "NoSuchAddSession",
  Code.noSuchAddSession,
  "The gateway has no such add-session"
)

export const AddSessionEnded = failure("AddSessionEnded", Code.stateForbids, "The add-session has ended")

export const NoSuchSubDevice = failure(
  "NoSuchSubDevice",
  Code.noSuchDevice,
  "The gateway has no such sub-device"
)

export const BelongsToOtherGateway = failure(
  "BelongsToOtherGateway",
  Code.otherGateway,
  "The device belongs to another gateway"
)

export const TooManySubDevices = failure(
  "TooManySubDevices",
  Code.stateForbids,
  "The gateway would have too many sub-devices"
)

/** From the errors of the domain. */
export const topologyFailures = {
  NotAGateway: ({ message }: Core.NotAGateway) => NotAGateway.make({ message }),
  NotASubDevice: ({ message }: Core.NotASubDevice) => NotASubDevice.make({ message }),
  AddSessionNotFound: ({ message }: Core.AddSessionNotFound) => NoSuchAddSession.make({ message }),
  AddSessionEnded: ({ message }: Core.AddSessionEnded) => AddSessionEnded.make({ message }),
  NotInTopology: ({ message }: Core.NotInTopology) => NoSuchSubDevice.make({ message }),
  BelongsToOtherGateway: ({ message }: Core.BelongsToOtherGateway) => BelongsToOtherGateway.make({ message }),
  TooManySubDevices: ({ message }: Core.TooManySubDevices) => TooManySubDevices.make({ message })
}
