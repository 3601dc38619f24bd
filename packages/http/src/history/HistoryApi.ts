/**
 * The routes that read what devices have reported over time
 * (docs/api/history.md).
 */
import { HistoryLimit } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"

/** The times that a date can hold. */
const UnixMillis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8.64e15 }))

const range = {
  start: Schema.optional(UnixMillis.annotate({ description: "Unix milliseconds, inclusive; default 0" })),
  end: Schema.optional(UnixMillis.annotate({ description: "Unix milliseconds, inclusive; default: no end" })),
  limit: Schema.optional(HistoryLimit.annotate({ description: "1 to 1000; default 100" })),
  order: Schema.optional(Schema.Literals(["asc", "desc"]).annotate({ description: "By time; default desc" }))
}

/** The range that a query asks for. */
export const historyRange = ({ end = 8.64e15, limit = 100, order = "desc", start = 0 }: {
  readonly [Name in keyof typeof range]?: typeof range[Name]["Type"]
}) => ({ start, end, limit, order })

const time = Schema.Int.annotate({ description: "Unix milliseconds" })

/** The group `history` of the typed client. */
export class HistoryApi extends HttpApiGroup.make("history").add(
  HttpApiEndpoint.get("listPropertyHistory", "/things/:device_id/properties/:property_id/history", {
    params: PathParams.property,
    query: range,
    success: Envelope(Schema.Struct({ results: Schema.Array(Schema.Struct({ time, value: Schema.Json })) })),
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the values that a device has reported of a property"),
  HttpApiEndpoint.get("listDeviceEvents", "/things/:device_id/events", {
    params: PathParams.deviceId,
    query: { ...range, event_id: Schema.optional(PathParams.property.property_id) },
    success: Envelope(
      Schema.Struct({
        results: Schema.Array(Schema.Struct({ event_id: Schema.String, time, value: Schema.Json }))
      })
    ),
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the events that a device has reported")
).annotate(OpenApi.Title, "History") {}
