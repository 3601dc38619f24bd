/**
 * Domain events as JSON documents: what applications receive, whichever way
 * (docs/api/events.md).
 */
import type { Json } from "../kernel/Json.ts"
import type { DomainEvent } from "./DomainEvent.ts"

/** The type of a document, by the kind of its event. */
export const eventTypes = {
  DeviceStatusChanged: "status",
  PropertiesReported: "property",
  EventReported: "event",
  CommandReplied: "reply",
  UpgradeProgressed: "upgrade",
  DeviceLifecycle: "lifecycle",
  TopologyChanged: "topology",
  SceneExecuted: "scene"
} as const satisfies Record<DomainEvent["_tag"], string>

/** The statuses of a device in an upgrade. A document has the place in this list, from 1. */
export const upgradeStatuses = ["pending", "upgrading", "succeeded", "failed", "cancelled"] as const

/** The event without its type and its id. */
export const eventDocument = (event: DomainEvent): { readonly [member: string]: Json } => {
  const { at, device } = event
  const named = device === null
    ? {}
    : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId }
  return { ...named, time: at, ...detailOf(event) }
}

/** The members that depend on the type of the event. */
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
      return { task_id: taskId, module, version, status: upgradeStatuses.indexOf(status) + 1, step, reason }
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
