/**
 * Acme's routes: who has inspected a device, and whether it passed.
 */
import { DeviceId } from "@device-cloud/core"
import {
  Authorization,
  DeviceFailures,
  Envelope,
  EnvelopeOnly,
  failure,
  IdempotencyMiddleware,
  RequestCheck,
  RequiredRole
} from "@device-cloud/http"
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"

export const Inspection = Schema.Struct({
  inspector: Schema.NonEmptyString,
  passed: Schema.Boolean
})

export const NotInspected = failure("NotInspected", 40450, "Nobody has inspected the device")

const params = { device_id: DeviceId }

export class InspectionApi extends HttpApi.make("acme").add(
  HttpApiGroup.make("inspections").add(
    HttpApiEndpoint.post("recordInspection", "/things/:device_id/inspections", {
      params,
      payload: Inspection,
      success: EnvelopeOnly,
      error: DeviceFailures.NoSuchDevice
    }).middleware(IdempotencyMiddleware)
      .annotate(OpenApi.Summary, "Record an inspection of a device")
      .annotate(RequiredRole, "admin"),
    HttpApiEndpoint.get("latestInspection", "/things/:device_id/inspections/latest", {
      params,
      success: Envelope(Inspection),
      error: [DeviceFailures.NoSuchDevice, NotInspected]
    }).annotate(OpenApi.Summary, "Read the latest inspection of a device")
  ).annotate(OpenApi.Title, "Inspections")
).middleware(Authorization)
  .middleware(RequestCheck)
  .prefix("/openapi/v1/acme")
{}
