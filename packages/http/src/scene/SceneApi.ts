/**
 * The routes of scenes (docs/api/scenes.md).
 */
import { ActionRecord, ConditionRecord, SceneDraft, SceneStatus, Text, TriggerRecord } from "@device-cloud/core"
import { Schema, Tuple } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { RequiredRole } from "../middleware/Authorization.ts"
import { DateText, Envelope, Paged, pageQuery } from "../Envelope.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { NoSuchProject } from "../project/ProjectFailures.ts"
import { NoSuchScene, SceneNameTaken, TooManyExecutions } from "./SceneFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import { describeDraft } from "./SceneDescription.ts"

const Empty = Envelope(Schema.Struct({}))

const scene = {
  id: Schema.String,
  name: Schema.String,
  desc: Schema.String,
  status: SceneStatus,
  triggers: Schema.Array(TriggerRecord),
  conditions: Schema.Array(ConditionRecord),
  actions: Schema.Array(ActionRecord),
  created_at: Schema.Int.annotate({ description: "Unix seconds" }),
  updated_at: Schema.Int.annotate({ description: "Unix seconds" }),
  paused_until: DateText.annotate({ description: "RFC 3339; empty: it does not run too often" })
}

export const SceneRecord = Schema.Struct(scene).annotate({ identifier: "Scene" })

export const ChangedSceneRecord = Schema.Struct({
  ...scene,
  warnings: Schema.Array(Schema.String).annotate({ description: "What the scene may lead to, such as firing itself" })
})

const finding = {
  verdict: Schema.Literals(["holds", "fails", "skipped"]).annotate({
    description: "skipped: its device is gone or disabled, and it counts for nothing"
  }),
  value: Schema.optionalKey(Schema.Json.annotate({ description: "What was found" })),
  previous: Schema.optionalKey(Schema.Json.annotate({ description: "The value before it was changed" })),
  source: Schema.String.annotate({
    description:
      "Where it was found: report, event, status, shadow, clock, timer, none, or what a custom condition names"
  }),
  time: DateText.annotate({ description: "As of when the value is; empty: not known" }),
  reason: Schema.String
}

const explanation = {
  triggers: Schema.Array(TriggerRecord.mapMembers(Tuple.map(Schema.fieldsAssign(finding)))),
  conditions: Schema.Array(ConditionRecord.mapMembers(Tuple.map(Schema.fieldsAssign(finding))))
}

const outcome = {
  status: Schema.String.annotate({ description: "pending, succeeded, failed, skipped, loop, limited" }),
  attempts: Schema.Int,
  time: DateText.annotate({ description: "The latest attempt" }),
  next_time: DateText.annotate({ description: "When it is tried again" }),
  detail: Schema.String
}

export const ExecutionRecord = Schema.Struct({
  execution_id: Schema.String,
  status: Schema.String.annotate({
    description: "pending, running, succeeded, failed, loop, limited, not_met, skipped, paused"
  }),
  reason: Schema.String,
  triggered_at: DateText,
  updated_at: DateText,
  event: Schema.Json.annotate({ description: "What has fired the scene" }),
  ...explanation,
  actions: Schema.Array(ActionRecord.mapMembers(Tuple.map(Schema.fieldsAssign(outcome))))
}).annotate({ identifier: "SceneExecution" })

export const ExplanationRecord = Schema.Struct({
  fires: Schema.Boolean,
  reason: Schema.String,
  ...explanation,
  actions: Schema.Array(ActionRecord).annotate({ description: "What would be done; empty when it does not fire" }),
  warnings: Schema.Array(Schema.String).annotate({ description: "Limits that would stop what it does" })
})

const device = { product_key: Text(128), device_name: Text(128) }

/** An event that might happen. */
export const Sample = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("property"),
    ...device,
    properties: Schema.Record(Schema.String, Schema.Json).annotate({ description: "Property to value" })
  }),
  Schema.Struct({
    type: Schema.Literal("event"),
    ...device,
    event_id: Text(128),
    value: Schema.optional(Schema.Json.annotate({ description: "The outputs; default {}" }))
  }),
  Schema.Struct({
    type: Schema.Literal("status"),
    ...device,
    status: Schema.Literals(["online", "offline"]),
    status_duration: Schema.optional(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 43_200 })).annotate({
        description: "Minutes for which the status has lasted; default: it changes now"
      })
    )
  }),
  Schema.Struct({
    type: Schema.Literal("cron"),
    cron_id: Schema.optional(Text(128).annotate({ description: "Default: the first of the scene" }))
  })
]).annotate({ expected: "an event of type property, event, status or cron" })

export const WebhookKeyRecord = Schema.Struct({
  key: Schema.String.annotate({ description: "`whsec_` and base64, as Standard Webhooks has it" }),
  created_at: DateText,
  previous_until: DateText.annotate({
    description: "Until when the key before signs as well; empty: there is no such key"
  })
})

export class SceneApi extends HttpApiGroup.make("scenes").add(
  HttpApiEndpoint.post("createScene", "/rule-engine/scenes", {
    payload: SceneDraft.annotate({
      examples: [{
        name: "Too hot",
        status: "enable",
        triggers: [{
          URI: "trigger/device/property",
          params: {
            product_key: "a1b2c3d4e5f",
            device_name: "*",
            property_id: "temperature",
            compare_type: ">",
            compare_val: "30"
          }
        }],
        actions: [{ URI: "action/webhook", params: { URL: "https://example.com/alarm", method: "POST" } }]
      }]
    }),
    success: Envelope(ChangedSceneRecord),
    error: [NoSuchProject, SceneNameTaken, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a scene")
    .annotate(
      OpenApi.Description,
      "Any trigger fires it, all conditions must hold, actions run in order. At most 10 triggers, 20 conditions and 50 " +
        "actions. Products, devices and scenes that it names must exist; comparisons and values must fit the model. " +
        "An empty text stands for a parameter that is left out."
    )
    .annotate(OpenApi.Transform, describeDraft),
  HttpApiEndpoint.put("updateScene", "/rule-engine/scenes/:id", {
    params: PathParams.scene,
    payload: SceneDraft,
    success: Envelope(ChangedSceneRecord),
    error: [NoSuchScene, SceneNameTaken]
  }).annotate(OpenApi.Summary, "Replace a scene")
    .annotate(OpenApi.Transform, describeDraft),
  HttpApiEndpoint.delete("deleteScene", "/rule-engine/scenes/:id", {
    params: PathParams.scene,
    success: Empty,
    error: NoSuchScene
  })
    .annotate(OpenApi.Summary, "Delete a scene with its executions"),
  HttpApiEndpoint.get("getScene", "/rule-engine/scenes/:id", {
    params: PathParams.scene,
    success: Envelope(SceneRecord),
    error: NoSuchScene
  }).annotate(OpenApi.Summary, "Read a scene"),
  HttpApiEndpoint.get("listScenes", "/rule-engine/scenes", {
    query: {
      ...pageQuery,
      name: Schema.optional(Text(128).annotate({ description: "What the name contains" })),
      status: Schema.optional(SceneStatus)
    },
    success: Paged(SceneRecord)
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the scenes of the project"),
  HttpApiEndpoint.post("runScene", "/rule-engine/scenes/:id/actions", {
    params: PathParams.scene,
    success: Envelope(Schema.Struct({ execution_id: Schema.String })),
    error: [NoSuchScene, TooManyExecutions]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Run the actions of a scene now")
    .annotate(OpenApi.Description, "Whatever its triggers and conditions say, also when it is disabled."),
  HttpApiEndpoint.put("setSceneStatus", "/rule-engine/scenes/:id/status", {
    params: PathParams.scene,
    payload: Schema.Struct({ status: SceneStatus }),
    success: Empty,
    error: NoSuchScene
  }).annotate(OpenApi.Summary, "Enable or disable a scene"),
  HttpApiEndpoint.get("listExecutions", "/rule-engine/scenes/:id/executions", {
    params: PathParams.scene,
    query: pageQuery,
    success: Paged(ExecutionRecord),
    error: NoSuchScene
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read why a scene has fired, or has not")
    .annotate(OpenApi.Description, "The latest 100, newest first."),
  HttpApiEndpoint.post("explainScene", "/rule-engine/scenes/:id/explain", {
    params: PathParams.scene,
    payload: Sample,
    success: Envelope(ExplanationRecord),
    error: [NoSuchScene, NoSuchDevice]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Find out what an event would do")
    .annotate(OpenApi.Description, "Nothing is done. The event is one that might happen now."),
  HttpApiEndpoint.get("listUpcomingTimes", "/rule-engine/cron", {
    query: {
      cron: Text(256).annotate({ description: "Six fields, seconds first, or five" }),
      time_zone: Schema.optional(Text(64).annotate({ description: "An IANA name; default: that of scenes" })),
      count: Schema.optional(
        PathParams.wholeNumber(20, 1).annotate({ description: "Default 5" })
      )
    },
    success: Envelope(Schema.Struct({
      time_zone: Schema.String,
      results: Schema.Array(DateText).annotate({ description: "Fewer than `count` if no more come" })
    }))
  }).annotate(OpenApi.Summary, "Read when a cron expression comes next"),
  HttpApiEndpoint.get("getWebhookKey", "/rule-engine/webhook-key", {
    success: Envelope(WebhookKeyRecord),
    error: NoSuchProject
  })
    .annotate(OpenApi.Summary, "Read the key that signs the webhooks of the project")
    .annotate(RequiredRole, "admin"),
  HttpApiEndpoint.post("rotateWebhookKey", "/rule-engine/webhook-key", {
    success: Envelope(WebhookKeyRecord),
    error: NoSuchProject
  })
    .middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Make a new key; the one before signs as well for a day")
    .annotate(RequiredRole, "admin")
).annotate(OpenApi.Title, "Scenes") {}
