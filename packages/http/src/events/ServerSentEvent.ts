/**
 * A domain event on the wire, as a server-sent event (docs/api/events.md).
 */
import type { DomainEvent, PublishedEvent } from "@device-cloud/core"
import { recordCode } from "../ota/OtaNumbers.ts"
import type { EventType } from "./EventApi.ts"

const encoder = new TextEncoder()

const bytesOf = (text: string): Uint8Array => encoder.encode(text)

/** The type of an event of the domain. */
export const typeOf = {
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

/** The bytes of an event. */
export const encode = ({ event, id }: PublishedEvent): Uint8Array => {
  const { at, device } = event
  const named = device === null
    ? {}
    : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId }
  const data = { ...named, time: at, ...detailOf(event) }
  return bytesOf(`id: ${id}\nevent: ${typeOf[event._tag]}\ndata: ${JSON.stringify(data)}\n\n`)
}

/** Events are missing here. */
export const gap: Uint8Array = bytesOf("event: gap\ndata: {}\n\n")

/** The beginning of a stream. It tells the client at once that it is connected. */
export const beginning: Uint8Array = bytesOf("retry: 1000\n\n")

/** Says nothing, so that no proxy takes the connection for dead. */
export const heartbeat: Uint8Array = bytesOf(":\n\n")
