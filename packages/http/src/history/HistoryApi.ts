/**
 * The routes that read what devices have reported over time
 * (docs/api/history.md).
 */
import { HistoryFill, HistoryFunction, HistoryInterval, HistoryLimit, HistoryTime } from "@device-cloud/core"
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { ReadOnly } from "../middleware/Authorization.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { ExportFormat } from "./HistoryExport.ts"

const period = {
  start: Schema.optional(HistoryTime.annotate({ description: "Unix milliseconds, inclusive; default 0" })),
  end: Schema.optional(HistoryTime.annotate({ description: "Unix milliseconds, inclusive; default: no end" }))
}

const range = {
  ...period,
  limit: Schema.optional(HistoryLimit.annotate({ description: "1 to 1000; default 100" })),
  order: Schema.optional(Schema.Literals(["asc", "desc"]).annotate({ description: "By time; default desc" }))
}

/** The range that a query asks for. */
export const historyRange = ({ end = 8.64e15, limit = 100, order = "desc", start = 0 }: {
  readonly [Name in keyof typeof range]?: typeof range[Name]["Type"]
}) => ({ start, end, limit, order })

const functionsDescription = "Asks for points, which sum up the numeric values of intervals, in place of values"

const plot = {
  interval: Schema.optional(HistoryInterval.annotate({ description: "Of points: seconds, 1 to 2,592,000" })),
  fill: Schema.optional(
    HistoryFill.annotate({
      description: "What becomes of intervals without a numeric value: left out (`none`, the default), a point " +
        "without one (`null`), or with the value that held before (`previous`)"
    })
  )
}

const Functions = Schema.Array(HistoryFunction).check(Schema.isMinLength(1), Schema.isUnique())

/** Several functions in one parameter, separated by commas. */
const FunctionsInQuery = Schema.String.pipe(
  Schema.decodeTo(
    Functions,
    SchemaTransformation.transform({
      // What is no function is refused with its place.
      decode: (text: string) => text.split(",") as ReadonlyArray<string> as ReadonlyArray<HistoryFunction>,
      encode: (functions) => functions.join(",")
    })
  )
).annotate({ description: `${functionsDescription}; several are separated by commas, such as avg,max` })

const time = Schema.Int.annotate({ description: "Unix milliseconds" })

const Value = Schema.Struct({ time, value: Schema.Json })

const summary = Schema.optional(Schema.NullOr(Schema.Finite))

/** A point has what its query asks for. */
const HistoryPointInfo = Schema.Struct({
  time: Schema.Int.annotate({ description: "The start of the interval, Unix milliseconds" }),
  avg: summary,
  min: summary,
  max: summary,
  first: summary,
  last: summary,
  count: Schema.optional(Schema.Int),
  sum: summary
}).annotate({ identifier: "HistoryPoint" })

/** Values, or points if the query asks for them. */
const Entries = Schema.Union([Schema.Array(Value), Schema.Array(HistoryPointInfo)])

const Device = Schema.Union([
  Schema.Struct(PathParams.deviceId),
  Schema.Struct(PathParams.deviceName)
])

/** What `POST /history/query` takes. */
export const HistoryQueryBody = Schema.Struct({
  devices: Schema.Array(Device).check(Schema.isMinLength(1), Schema.isMaxLength(100)).annotate({
    description: "1 to 100 devices, by id, or by product key and name"
  }),
  properties: Schema.Array(PathParams.property.property_id).check(Schema.isMinLength(1), Schema.isMaxLength(200))
    .annotate({ description: "Their properties; devices × properties: at most 200 series" }),
  ...range,
  aggregate: Schema.optional(Functions.annotate({ description: functionsDescription })),
  ...plot
})

const Series = Schema.Struct({
  device_id: Schema.String.annotate({ description: "Empty: there is no device of this name" }),
  product_key: Schema.String.annotate({ description: "Empty: there is no device of this id" }),
  device_name: Schema.String.annotate({ description: "Empty: there is no device of this id" }),
  property_id: Schema.String,
  code: Schema.Int.annotate({ description: "0; another: the code of the failure" }),
  message: Schema.String,
  results: Entries
}).annotate({ identifier: "HistorySeries" })

const exported = {
  query: {
    ...period,
    property: Schema.optional(
      Schema.Union([PathParams.property.property_id, Schema.Array(PathParams.property.property_id)]).annotate({
        description: "May be repeated; default: all properties"
      })
    ),
    format: Schema.optional(ExportFormat.annotate({ description: "Default csv" }))
  },
  success: [
    Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" })),
    Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))
  ]
} as const

const exportDescription = "A stream of all values in the range, those of each property by time. A response that " +
  "breaks off is not whole."

/** The group `history` of the typed client. */
export class HistoryApi extends HttpApiGroup.make("history").add(
  HttpApiEndpoint.get("listPropertyHistory", "/things/:device_id/properties/:property_id/history", {
    params: PathParams.property,
    query: { ...range, aggregate: Schema.optional(FunctionsInQuery), ...plot },
    success: Envelope(Schema.Struct({ results: Entries })),
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the values that a device has reported of a property")
    .annotate(
      OpenApi.Description,
      "With `aggregate`, points that sum up its numeric values by intervals: at most 10,000, and `start` and " +
        "`interval` are required."
    ),
  HttpApiEndpoint.post("queryHistory", "/history/query", {
    payload: HistoryQueryBody.pipe(Schema.annotateEncoded({
      examples: [{
        devices: [{ device_id: "Yb1Qw5dQJ2fEm0XkqT7c" }, { product_key: "a1B2c3D4e5F", device_name: "hall" }],
        properties: ["Temperature", "Humidity"],
        start: 1795305600000,
        end: 1795391999999,
        aggregate: ["avg", "max"],
        interval: 300,
        fill: "null",
        order: "asc"
      }]
    })),
    success: Envelope(Schema.Struct({ series: Schema.Array(Series) }))
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read properties of many devices")
    .annotate(
      OpenApi.Description,
      "Changes nothing. A series for each property of each device; one of an unknown device has the code of its " +
        "failure, and the others have their results. At most 50,000 values or points in all."
    )
    .annotate(ReadOnly, true),
  HttpApiEndpoint.get("exportDeviceHistory", "/things/:device_id/history/export", {
    params: PathParams.deviceId,
    ...exported,
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Export the values that a device has reported")
    .annotate(OpenApi.Description, exportDescription),
  HttpApiEndpoint.get("exportProductHistory", "/products/:product_key/history/export", {
    params: PathParams.productKey,
    ...exported,
    error: NoSuchProduct
  }).middleware(ExpensiveRead).annotate(
    OpenApi.Summary,
    "Export the values that the devices of a product have reported"
  )
    .annotate(OpenApi.Description, `${exportDescription} One device comes after the other, the oldest first.`),
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
