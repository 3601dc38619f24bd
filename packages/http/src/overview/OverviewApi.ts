/**
 * The routes that show how a project is (docs/api/overview.md).
 */
import { HistoryTime, maxActivityPoints } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import { TaskRecord } from "../ota/OtaApi.ts"
import { NoSuchProject } from "../project/ProjectFailures.ts"

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

const time = Schema.Int.annotate({ description: "Unix milliseconds" })

const UpgradeUnderWay = Schema.Struct({
  ...TaskRecord.fields,
  product_key: Schema.String,
  module: Schema.String,
  version: Schema.String.annotate({ description: "The target" })
}).annotate({ identifier: "UpgradeUnderWay" })

/** Something that needs attention. What `subject` and `details` hold depends on the kind. */
export const AttentionInfo = Schema.Struct({
  kind: Schema.Literals([
    "device_flapping",
    "device_refused",
    "upgrade_stuck",
    "scene_failing",
    "subscription_failing",
    "access_key_expires",
    "quota_nearly_used"
  ]),
  subject: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Int])).annotate({
    description: "The ids and the name of what needs attention"
  }),
  since: Schema.NullOr(time).annotate({ description: "Unix milliseconds; null: it has no beginning" }),
  at: Schema.NullOr(time).annotate({ description: "The latest time, Unix milliseconds; null: it goes on" }),
  count: Schema.Int.annotate({ description: "How often, or how many" }),
  details: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Int, Schema.Boolean])).annotate({
    description: "What a sentence about it says"
  })
}).annotate({ identifier: "Attention" })

/** How a project is now. */
export const OverviewInfo = Schema.Struct({
  at: time.annotate({ description: "When this was true: at most five seconds ago" }),
  devices: Schema.Struct({
    total: Schema.Int,
    online: Schema.Int,
    offline: Schema.Int,
    unactive: Schema.Int.annotate({ description: "Have never been online" }),
    disabled: Schema.Int.annotate({ description: "Of all, whatever their status is" })
  }),
  products: Schema.Int,
  upgrades: Schema.Struct({
    total: Schema.Int.annotate({ description: "Upgrade tasks that have not ended" }),
    tasks: Schema.Array(UpgradeUnderWay).annotate({ description: "The newest 20" })
  }),
  jobs: Schema.Int.annotate({ description: "Jobs in progress" }),
  bulk_commands: Schema.Int.annotate({ description: "Bulk commands that have devices to ask" }),
  scenes: Schema.Struct({
    enabled: Schema.Int,
    executions: Schema.Int.annotate({ description: "Executions that have not ended; at most 1,000 are counted" })
  }),
  attention: Schema.Array(AttentionInfo).annotate({ description: "Of each kind at most 20" })
}).annotate({ identifier: "Overview" })

/** The nodes of the cloud, and its storage. */
export const NodesInfo = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({
    node_id: Schema.String,
    started_at: time,
    heartbeat_at: time,
    status: Schema.Literals(["steady", "starting", "draining", "silent"]).annotate({
      description: "`starting`: heard for less than nine seconds without a gap; `draining`: about to end; " +
        "`silent`: not heard for nine seconds, or for five and its connection to PostgreSQL has ended"
    }),
    connections: Schema.NullOr(Schema.Int).annotate({ description: "Devices connected to it; null: not known yet" })
  })),
  storage: Schema.NullOr(Schema.Struct({
    reachable: Schema.Boolean,
    latency: Schema.Int.annotate({ description: "How long the latest check took, milliseconds" }),
    checked_at: time,
    migration: Schema.NullOr(Schema.String).annotate({ description: "The latest change of the tables" })
  })).annotate({ description: "As the server sees it that responds; null: not known" })
}).annotate({ identifier: "Nodes" })

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
    ),
  HttpApiEndpoint.get("getOverview", "/overview", { success: Envelope(OverviewInfo), error: NoSuchProject })
    .annotate(OpenApi.Summary, "Read how the project is now")
    .annotate(OpenApi.Description, "What it has, what is under way, and what needs attention."),
  HttpApiEndpoint.get("listNodes", "/nodes", { success: Envelope(NodesInfo) })
    .annotate(OpenApi.Summary, "List the nodes of the cloud, with the health of its storage")
).annotate(OpenApi.Title, "Overview") {}
