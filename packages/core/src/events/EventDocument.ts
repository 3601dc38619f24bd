/**
 * Domain events as JSON documents: what applications receive, whichever way
 * (docs/api/events.md).
 */
import type { Json } from "../kernel/Json.ts"
import type { DeviceLink, DomainEvent } from "./DomainEvent.ts"

/** The type of a document, by the kind of its event. */
export const eventTypes = {
  DeviceStatusChanged: "status",
  ConnectionReplaced: "takeover",
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

type Kind = DomainEvent["_tag"]
type Of<K extends Kind> = Extract<DomainEvent, { readonly _tag: K }>

/** The device that an event is about; an event of a scene that no device has fired is about none. */
interface NamedDevice {
  readonly product_key: string
  readonly device_name: string
  readonly device_id: string
}

/** An event of a kind, without its type and its id. `time` is Unix milliseconds. */
export type EventDocument<K extends Kind = Kind> =
  & { readonly time: number }
  & ReturnType<(typeof details)[K]>
  & (null extends Of<K>["device"] ? Partial<NamedDevice> : NamedDevice)

/** The event without its type and its id. */
export const eventDocument = (event: DomainEvent): { readonly [member: string]: Json } => {
  const { at, device } = event
  const named = device === null
    ? {}
    : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId }
  return {
    ...named,
    time: at,
    ...detailsOf(event)
  }
}

/**
 * The text of {@link eventDocument}, as `JSON.stringify` writes it. It costs less
 * than half of that: most of a document is known as text.
 */
export const eventText = (event: DomainEvent): string => {
  const { at, device } = event
  const named = device === null
    ? "{"
    : `{"product_key":${JSON.stringify(device.productKey)},"device_name":${JSON.stringify(device.deviceName)},` +
      `"device_id":${JSON.stringify(device.deviceId)},`
  return `${named}"time":${at},${
    event._tag === "PropertiesReported"
      ? `${propertiesText(event.properties)}}`
      : JSON.stringify(detailsOf(event)).slice(1)
  }`
}

/** The member of a report. Nearly all events are reports, and most values are numbers. */
const propertiesText = (properties: Of<"PropertiesReported">["properties"]): string => {
  let text = ""
  for (const propertyId of Object.keys(properties)) {
    const { time, value } = properties[propertyId]!
    text += `${text === "" ? "" : ","}${JSON.stringify(propertyId)}:{"value":${valueText(value)},"time":${time}}`
  }
  return `"properties":{${text}}`
}

const valueText = (value: Json): string => Number.isFinite(value) ? `${value as number}` : JSON.stringify(value)

/** The members about a connection. */
const linkMembers = ({ address, gateway, nodeId, transport }: DeviceLink) => ({
  address,
  transport,
  node: nodeId,
  ...gateway === undefined ? {} : { gateway: { product_key: gateway.productKey, device_name: gateway.deviceName } }
})

/** The members that depend on the kind of the event. */
const details = {
  DeviceStatusChanged: ({ link, reason, status, version }: Of<"DeviceStatusChanged">) => ({
    status,
    version,
    ...link === undefined ? {} : linkMembers(link),
    ...reason === undefined ? {} : { reason }
  }),
  ConnectionReplaced: ({ link }: Of<"ConnectionReplaced">) => linkMembers(link),
  // Values of a report that was not read from a database are objects of a class, which no schema takes for JSON.
  PropertiesReported: ({ properties }: Of<"PropertiesReported">) => ({
    properties: Object.fromEntries(
      Object.entries(properties).map(([propertyId, { time, value }]) => [propertyId, { value, time }])
    )
  }),
  EventReported: ({ eventId, time, value }: Of<"EventReported">) => ({ event_id: eventId, event_time: time, value }),
  CommandReplied: ({ code, data, message, messageId }: Of<"CommandReplied">) => ({
    message_id: String(messageId),
    code,
    message,
    data
  }),
  UpgradeProgressed: ({ module, reason, status, step, taskId, version }: Of<"UpgradeProgressed">) => ({
    task_id: taskId,
    module,
    version,
    status: upgradeStatuses.indexOf(status) + 1,
    step,
    reason
  }),
  DeviceLifecycle: ({ action }: Of<"DeviceLifecycle">) => ({ action }),
  TopologyChanged: ({ action, subDevices }: Of<"TopologyChanged">) => ({
    action,
    sub_devices: subDevices.map(({ deviceId, deviceName, productKey }) => ({
      device_id: deviceId,
      device_name: deviceName,
      product_key: productKey
    }))
  }),
  SceneExecuted: ({ executionId, reason, sceneId, sceneName, status }: Of<"SceneExecuted">) => ({
    scene_id: sceneId,
    scene_name: sceneName,
    execution_id: executionId,
    status,
    reason
  })
} satisfies { readonly [K in Kind]: (event: Of<K>) => Readonly<Record<string, Json>> }

/** At least one member. */
const detailsOf = (event: DomainEvent): Readonly<Record<string, Json>> =>
  (details[event._tag] as (event: DomainEvent) => Readonly<Record<string, Json>>)(event)
