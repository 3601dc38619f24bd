/**
 * Failures of the routes of devices, their batches and their shadows.
 */
import type * as Core from "@device-cloud/core"
import { Schema } from "effect"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"
import { snakeCase } from "../SnakeCase.ts"

export const NoSuchDevice = failure("NoSuchDevice", Code.noSuchDevice, "The project has no such device")

export const NoSuchBatch = failure("NoSuchBatch", Code.noSuchBatch, "The product has no such batch")

export const DeviceDisabled = failure("DeviceDisabled", Code.deviceDisabled, "The device is disabled")

export const NotACloudGateway = failure(
  "NotACloudGateway",
  Code.operationUnfit,
  "Only devices of a cloud-gateway product take this"
)

export const DeviceNamesTaken = failure(
  "DeviceNamesTaken",
  Code.taken,
  "Devices of the product have these names",
  { device_names: Schema.Array(Schema.String).annotate({ description: "The first 100 of them" }) }
)

export const ShadowVersionConflict = failure(
  "ShadowVersionConflict",
  Code.shadowVersionConflict,
  "The shadow is in another version",
  { version: Schema.Int.annotate({ description: "The current version of the shadow" }) }
)

export const PropertyNotReported = failure(
  "PropertyNotReported",
  Code.noSuchElement,
  "The shadow has no reported value of the property"
)

/** Taken names in a response at most. */
const namesShown = 100

/** From the errors of the domain. */
export const deviceFailures = {
  DeviceNotFound: ({ message }: Core.DeviceNotFound) => NoSuchDevice.make({ message }),
  BatchNotFound: ({ message }: Core.BatchNotFound) => NoSuchBatch.make({ message }),
  DeviceDisabled: ({ message }: Core.DeviceDisabled) => DeviceDisabled.make({ message }),
  NotACloudGateway: ({ fields, message }: Core.NotACloudGateway) =>
    NotACloudGateway.make({ message: message.replace(fields.join(", "), fields.map(snakeCase).join(", ")) }),
  DeviceNamesTaken: ({ deviceNames, message }: Core.DeviceNamesTaken) =>
    DeviceNamesTaken.make({ message, data: { device_names: deviceNames.slice(0, namesShown) } }),
  PropertyNotReported: ({ message }: Core.PropertyNotReported) => PropertyNotReported.make({ message }),
  ShadowVersionConflict: ({ message, version }: Core.ShadowVersionConflict) =>
    ShadowVersionConflict.make({
      message,
      data: { version }
    })
}
