/**
 * The routes of traces (docs/api/traces.md).
 */
import { TraceDraft } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { DateText, Envelope, EnvelopeOnly } from "../Envelope.ts"
import { issuesData } from "../Failure.ts"
import * as PathParams from "../PathParams.ts"
import { TooManyTraces } from "./TraceFailures.ts"

const maxEntries = 200

const TracedText = Schema.Struct({
  text: Schema.String.annotate({ description: "Without secrets and signatures" }),
  encoding: Schema.Literals(["utf8", "hex"]),
  bytes: Schema.Int.annotate({ description: "Of the whole" }),
  cut: Schema.Boolean.annotate({ description: "Whether more follows that is not shown" })
}).annotate({ identifier: "TracedText" })

/** One entry of a trace. */
export const TraceEntry = Schema.Struct({
  entry_id: Schema.Int.annotate({ description: "Later entries have larger numbers" }),
  time: DateText.annotate({ description: "When it arrived or was sent" }),
  kind: Schema.Literals(["uplink", "downlink", "connected", "disconnected", "refused"]),
  transport: Schema.String.annotate({ description: "mqtt, websocket, http, mqtt-bridge, gateway, or another one" }),
  gateway: Schema.NullOr(Schema.Struct({ product_key: Schema.String, device_name: Schema.String })).annotate({
    description: "The gateway that speaks for the device"
  }),
  node: Schema.String.annotate({ description: "The node of the cloud" }),
  address: Schema.String.annotate({ description: "Of the client, if it has connected or was refused; or empty" }),
  topic: Schema.String.annotate({ description: "Of a message; over HTTP the action" }),
  payload: Schema.NullOr(TracedText),
  reply: Schema.NullOr(Schema.Struct({
    code: Schema.Int.annotate({ description: "200: the message has taken effect" }),
    message: Schema.String,
    data: TracedText,
    issues: issuesData.issues
  })).annotate({ description: "What the cloud has answered" }),
  reason: Schema.String.annotate({ description: "Why a connection has ended or a device was refused; or empty" })
}).annotate({ identifier: "TraceEntry" })

const until = DateText.annotate({ description: "When it ends, or has ended; empty: there is none" })

/** The group `traces` of the typed client. */
export class TraceApi extends HttpApiGroup.make("traces").add(
  HttpApiEndpoint.put("startTrace", "/things/:device_id/trace", {
    params: PathParams.deviceId,
    payload: TraceDraft.annotate({ examples: [{ minutes: 10 }] }),
    success: Envelope(Schema.Struct({ until })),
    error: [NoSuchDevice, TooManyTraces]
  }).annotate(OpenApi.Summary, "Trace a device: what it says and hears, message by message")
    .annotate(OpenApi.Description, "For so many minutes from now. At most 20 devices of a project at a time."),
  HttpApiEndpoint.get("readTrace", "/things/:device_id/trace", {
    params: PathParams.deviceId,
    query: {
      after: Schema.optional(
        PathParams.wholeNumber(Number.MAX_SAFE_INTEGER).annotate({ description: "The `cursor` of the page before" })
      ),
      limit: Schema.optional(
        PathParams.wholeNumber(maxEntries, 1).annotate({ description: `1 to ${maxEntries}; default 100` })
      )
    },
    success: Envelope(Schema.Struct({
      until,
      dropped: Schema.Int.annotate({ description: "Entries for which there was no room" }),
      cursor: Schema.Int.annotate({ description: "Give it as `after` to read what follows" }),
      results: Schema.Array(TraceEntry).annotate({ description: "The oldest first" })
    })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read the trace of a device")
    .annotate(OpenApi.Description, "What follows `after`, or without it the latest. The latest 1,000 are kept."),
  HttpApiEndpoint.delete("stopTrace", "/things/:device_id/trace", {
    params: PathParams.deviceId,
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "End the trace of a device")
    .annotate(OpenApi.Description, "What it has noted is kept for ten minutes more.")
).annotate(OpenApi.Title, "Traces") {}
