/**
 * The handlers of the routes of scenes.
 */
import {
  type Action,
  type ActionRecord,
  type ChangedScene,
  type DeviceName,
  encodeAction,
  encodeCondition,
  encodeTrigger,
  type Execution,
  type Explanation,
  type Json,
  type ProductKey,
  type SampleEvent,
  type Scene,
  type SceneEvaluator,
  type SceneEvent,
  Scenes,
  shownKey,
  type WebhookKeys,
  WebhookSigning
} from "@device-cloud/core"
import { Effect, Record } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { type Caller, shownAnswer, shownUrl } from "../middleware/Caller.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, respond, respondPage } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import type {
  ChangedSceneRecord,
  ExecutionRecord,
  ExplanationRecord,
  Sample,
  SceneRecord,
  WebhookKeyRecord
} from "./SceneApi.ts"

export const layer = group(
  Api,
  "scenes",
  Effect.fnUntraced(function*(handlers) {
    const scenes = yield* Scenes
    const signing = yield* WebhookSigning
    return handlers.handleAll({
      createScene: ({ payload }) =>
        CurrentPrincipal.use((caller) => respond(scenes.create(caller.projectId, payload), changedRecord(caller))),
      updateScene: ({ params, payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(scenes.update(caller.projectId, params.id, payload), changedRecord(caller))
        ),
      deleteScene: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(scenes.remove(projectId, params.id), empty)),
      getScene: ({ params }) =>
        CurrentPrincipal.use((caller) => respond(scenes.get(caller.projectId, params.id), sceneRecord(caller))),
      listScenes: ({ query }) =>
        CurrentPrincipal.use((caller) => {
          const filter = { name: query.name, status: query.status }
          return respondPage(query, (page) => scenes.list(caller.projectId, filter, page), sceneRecord(caller))
        }),
      runScene: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(scenes.run(projectId, params.id), (executionId) => ({ execution_id: executionId }))
        ),
      setSceneStatus: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(scenes.setStatus(projectId, params.id, payload.status), empty)),
      listExecutions: ({ params, query }) =>
        CurrentPrincipal.use((caller) =>
          respondPage(query, (page) => scenes.executions(caller.projectId, params.id, page), executionRecord(caller))
        ),
      explainScene: ({ params, payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(scenes.explain(caller.projectId, params.id, sampleEvent(payload)), explanationRecord(caller))
        ),
      listUpcomingTimes: ({ query: { count = 5, cron, time_zone } }) =>
        respond(scenes.upcoming(cron, count, time_zone), ({ timeZone, times }) => ({
          time_zone: timeZone,
          results: times.map((time) => dateText(time))
        })),
      getWebhookKey: () => CurrentPrincipal.use((caller) => respond(signing.keys(caller.projectId), keyRecord(caller))),
      rotateWebhookKey: () =>
        CurrentPrincipal.use((caller) => respond(signing.rotate(caller.projectId), keyRecord(caller)))
    })
  })
)

const empty = () => ({})

const seconds = (millis: number): number => Math.floor(millis / 1000)

const actionRecord = (caller: Caller) => (action: Action): ActionRecord => {
  if (action._tag !== "Webhook") return encodeAction(action)
  const url = shownUrl(caller, action.url)
  return encodeAction({
    ...action,
    url,
    ...action.body === undefined ? {} : { body: caller.reveal(action.body) }
  })
}

const sceneRecord = (caller: Caller) => (scene: Scene) =>
  ({
    id: scene.sceneId,
    name: scene.name,
    desc: scene.desc,
    status: scene.status,
    triggers: scene.triggers.map(encodeTrigger),
    conditions: scene.conditions.map(encodeCondition),
    actions: scene.actions.map(actionRecord(caller)),
    created_at: seconds(scene.createdAt),
    updated_at: seconds(scene.updatedAt),
    paused_until: dateText(scene.pausedUntil)
  }) satisfies typeof SceneRecord.Type

const changedRecord = (caller: Caller) => ({ scene, warnings }: ChangedScene): typeof ChangedSceneRecord.Type => ({
  ...sceneRecord(caller)(scene),
  warnings
})

const finding = ({ previous, reason, source, time, value, verdict }: SceneEvaluator.Finding) => ({
  verdict,
  ...value === undefined ? {} : { value },
  ...previous === undefined ? {} : { previous },
  source,
  time: dateText(time),
  reason
})

const explanation = (verdict: Pick<SceneEvaluator.Verdict, "triggers" | "conditions"> | null) => ({
  triggers: (verdict?.triggers ?? []).map((found) => ({ ...encodeTrigger(found.trigger), ...finding(found) })),
  conditions: (verdict?.conditions ?? []).map((found) => ({ ...encodeCondition(found.condition), ...finding(found) }))
})

/** Writes the event that has fired a scene as the stream of events names it. */
const eventRecord = (event: SceneEvent): Json => {
  const device = "device" in event && event.device !== null
    ? {
      product_key: event.device.productKey,
      device_name: event.device.deviceName,
      device_id: event.device.deviceId
    }
    : {}
  const time = dateText(event.at)
  switch (event._tag) {
    case "PropertiesChanged":
      return {
        type: "property",
        time,
        ...device,
        properties: Record.map(event.properties, (changed) => ({ ...changed }))
      }
    case "EventReported":
      return { type: "event", time, ...device, event_id: event.eventId, event_time: event.time, value: event.value }
    case "StatusChanged":
      return { type: "status", time, ...device, status: event.status }
    case "StatusLasted":
      return {
        type: "status",
        time,
        ...device,
        status: event.status,
        status_duration: event.minutes,
        since: dateText(event.since)
      }
    case "CronTicked":
      return { type: "cron", time, cron_id: event.cronId }
    case "RunByHand":
      return { type: "manual", time }
    case "RunByScene":
      return { type: "rule", time, ...device, scene_id: event.sceneId, execution_id: event.executionId }
  }
}

const shownDetail = (caller: Caller, action: Action, detail: string): string =>
  action._tag === "Webhook" ? shownAnswer(caller, detail) : detail

const executionRecord = (caller: Caller) => (execution: Execution) =>
  ({
    execution_id: execution.executionId,
    status: execution.status,
    reason: execution.reason,
    triggered_at: dateText(execution.at),
    updated_at: dateText(execution.updatedAt),
    event: eventRecord(execution.event),
    ...explanation(execution.verdict),
    actions: execution.outcomes.map(({ action, at, attempts, detail, nextAt, status }) => ({
      ...actionRecord(caller)(action),
      status,
      attempts,
      time: dateText(at),
      next_time: dateText(status === "pending" ? nextAt : null),
      detail: shownDetail(caller, action, detail)
    }))
  }) satisfies typeof ExecutionRecord.Type

const explanationRecord = (caller: Caller) => (explained: Explanation) =>
  ({
    fires: explained.fires,
    reason: explained.reason,
    ...explanation(explained),
    actions: explained.fires ? explained.scene.actions.map(actionRecord(caller)) : [],
    warnings: explained.warnings
  }) satisfies typeof ExplanationRecord.Type

const sampleEvent = (sample: typeof Sample.Type): SampleEvent => {
  if (sample.type === "cron") return { _tag: "Cron", cronId: sample.cron_id }
  const device = {
    productKey: sample.product_key as ProductKey,
    deviceName: sample.device_name as DeviceName
  }
  switch (sample.type) {
    case "property":
      return { _tag: "Property", ...device, properties: sample.properties }
    case "event":
      return { _tag: "Event", ...device, eventId: sample.event_id, value: sample.value ?? {} }
    case "status":
      return { _tag: "Status", ...device, status: sample.status, minutes: sample.status_duration }
  }
}

const keyRecord =
  (caller: Caller) => ({ createdAt, current, previous }: WebhookKeys): typeof WebhookKeyRecord.Type => ({
    key: caller.reveal(shownKey(current)),
    created_at: dateText(createdAt),
    previous_until: dateText(previous?.until ?? null)
  })
