/**
 * Handler of the stream of events.
 */
import { type DomainEvent, EventBus, projectOf, type PublishedEvent } from "@device-cloud/core"
import { Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { group } from "../ApiHandlers.ts"
import { recordCode } from "../ota/OtaNumbers.ts"
import type { EventType } from "./EventApi.ts"

/** Implements the group `events`. */
export const layer = group(
  Api,
  "events",
  Effect.fnUntraced(function*(handlers) {
    const bus = yield* EventBus
    return handlers.handleRaw("streamEvents", ({ headers, query }) =>
      Effect.gen(function*() {
        const { projectId } = yield* CurrentPrincipal
        const types = query.type === undefined ? undefined : new Set(query.type.split(","))
        const concerns = ({ event }: PublishedEvent): boolean =>
          projectOf(event) === projectId &&
          (query.product_key === undefined || event.device?.productKey === query.product_key) &&
          (query.device_id === undefined || event.device?.deviceId === query.device_id) &&
          (types === undefined || types.has(typeOf[event._tag]))
        const events = (yield* bus.since(headers["last-event-id"])).pipe(
          Stream.filter((published) => published === "gap" || concerns(published)),
          Stream.map((published) => published === "gap" ? gap : encode(published))
        )
        // The first line tells the client at once that it is connected.
        const heartbeat = Stream.map(Stream.fromSchedule(Schedule.spaced(heartbeatEvery)), () => ":\n\n")
        return HttpServerResponse.stream(
          Stream.concat(Stream.succeed("retry: 1000\n\n"), Stream.merge(events, heartbeat)).pipe(Stream.encodeText),
          { contentType: "text/event-stream", headers: { "cache-control": "no-store", "x-accel-buffering": "no" } }
        )
      }))
  })
)

/** How often the stream sends something, so that no proxy takes the connection for dead. */
const heartbeatEvery = "15 seconds"

const typeOf = {
  DeviceStatusChanged: "status",
  PropertiesReported: "property",
  EventReported: "event",
  CommandReplied: "reply",
  UpgradeProgressed: "upgrade",
  DeviceLifecycle: "lifecycle",
  TopologyChanged: "topology",
  SceneExecuted: "scene"
} as const satisfies Record<DomainEvent["_tag"], typeof EventType.Type>

/** The members of `data` that depend on the type of the event. */
const detailOf = (event: DomainEvent) => {
  switch (event._tag) {
    case "DeviceStatusChanged":
      return { status: event.status, version: event.version }
    case "PropertiesReported":
      return { properties: event.properties }
    case "EventReported":
      return { event_id: event.eventId, event_time: event.time, value: event.value }
    case "CommandReplied":
      return { message_id: String(event.messageId), code: event.code, message: event.message, data: event.data }
    case "UpgradeProgressed": {
      const { module, reason, status, step, taskId, version } = event
      return { task_id: taskId, module, version, status: recordCode(status), step, reason }
    }
    case "DeviceLifecycle":
      return { action: event.action }
    case "TopologyChanged":
      return {
        action: event.action,
        sub_devices: event.subDevices.map(({ deviceId, deviceName, productKey }) => ({
          device_id: deviceId,
          device_name: deviceName,
          product_key: productKey
        }))
      }
    case "SceneExecuted": {
      const { executionId, reason, sceneId, sceneName, status } = event
      return { scene_id: sceneId, scene_name: sceneName, execution_id: executionId, status, reason }
    }
  }
}

const encode = ({ event, id }: PublishedEvent): string => {
  const { at, device } = event
  const named = device === null
    ? {}
    : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId }
  const data = { ...named, time: at, ...detailOf(event) }
  return `id: ${id}\nevent: ${typeOf[event._tag]}\ndata: ${JSON.stringify(data)}\n\n`
}

const gap = "event: gap\ndata: {}\n\n"
