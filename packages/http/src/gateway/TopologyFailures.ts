/**
 * Failures of the routes of gateways and their sub-devices.
 */
import type * as Core from "@device-cloud/core"
import { maxSubDevices } from "@device-cloud/core"
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
  NotAGateway: ({ deviceId }: Core.NotAGateway) =>
    NotAGateway.make({ message: `Device ${deviceId} is no gateway: its product is of another node type` }),
  NotASubDevice: ({ productKey }: Core.NotASubDevice) =>
    NotASubDevice.make({
      message: `Product ${productKey} is not of node type gateway-sub: its devices join no gateway`
    }),
  AddSessionNotFound: ({ gatewayId, sessionId }: Core.AddSessionNotFound) =>
    NoSuchAddSession.make({ message: `Gateway ${gatewayId} has no add-session ${sessionId}` }),
  AddSessionEnded: ({ sessionId }: Core.AddSessionEnded) =>
    AddSessionEnded.make({ message: `Add-session ${sessionId} has ended; start another one` }),
  NotInTopology: ({ device, gatewayId }: Core.NotInTopology) =>
    NoSuchSubDevice.make({ message: `Device ${device} is no sub-device of gateway ${gatewayId}` }),
  BelongsToOtherGateway: ({ device }: Core.BelongsToOtherGateway) =>
    BelongsToOtherGateway.make({ message: `Device ${device} belongs to another gateway; remove it there first` }),
  TooManySubDevices: ({ gatewayId }: Core.TooManySubDevices) =>
    TooManySubDevices.make({ message: `Gateway ${gatewayId} would have more than ${maxSubDevices} sub-devices` })
}
