/**
 * The routes that show how a project is (docs/api/overview.md).
 */
import { HistoryTime, maxActivityPoints } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"

const ByCode = Schema.Record(Schema.String, Schema.Int)

/** What has happened in a project during an interval. */
export const ActivityPointInfo = Schema.Struct({
  time: Schema.Int.annotate({ description: "The start of the interval, Unix milliseconds" }),
  devices_online: Schema.Int.annotate({ description: "On average" }),
  messages: Schema.Struct({
    accepted: Schema.Int.annotate({ description: "Messages of devices that took effect" }),
    refused: ByCode.annotate({ description: "Messages of devices that did not, by reply code" })
  }),
  commands: Schema.Struct({
    replied: Schema.Int.annotate({ description: "Commands that devices have carried out" }),
    failed: ByCode.annotate({
      description: "Commands that have failed, by the code of the device; `no_reply`: the device has not answered"
    }),
    expired: Schema.Int.annotate({ description: "Commands whose time was over" })
  }),
  executions: Schema.Struct({
    succeeded: Schema.Int.annotate({ description: "Executions of scenes whose actions have succeeded" }),
    failed: Schema.Int.annotate({ description: "Executions of scenes that have ended in another way" })
  })
}).annotate({ identifier: "ActivityPoint" })

/** The activity of a project over time. */
export const ActivityInfo = Schema.Struct({
  from: Schema.Int.annotate({ description: "Unix milliseconds, inclusive" }),
  to: Schema.Int.annotate({ description: "Unix milliseconds, exclusive" }),
  interval: Schema.Int.annotate({ description: "The length of the intervals, seconds" }),
  points: Schema.Array(ActivityPointInfo)
}).annotate({ identifier: "Activity" })

/** The group `overview` of the typed client. */
export class OverviewApi extends HttpApiGroup.make("overview").add(
  HttpApiEndpoint.get("getActivity", "/activity", {
    query: {
      from: Schema.optional(
        HistoryTime.annotate({ description: "Unix milliseconds; default: three hours before `to`" })
      ),
      to: Schema.optional(HistoryTime.annotate({ description: "Unix milliseconds; default: now" }))
    },
    success: Envelope(ActivityInfo)
  }).annotate(OpenApi.Summary, "Read the activity of the project over time")
    .annotate(
      OpenApi.Description,
      `A point for each interval, the oldest first, at most ${maxActivityPoints}. Intervals have 1 to 10 minutes if ` +
        "the period lies in the last 48 hours, otherwise 1 or 2 hours; nothing is older than 31 days."
    )
).annotate(OpenApi.Title, "Overview") {}
