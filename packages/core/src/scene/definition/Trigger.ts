/**
 * Triggers: what fires a scene. One of them is enough.
 */
import { Schema } from "effect"
import { Text } from "../../kernel/Text.ts"
import {
  comparisonParams,
  deviceParams,
  Name,
  ofDevices,
  ofValue,
  OrEmpty,
  type ParamsReader,
  partRecord,
  WatchedStatus,
  wildcard,
  writeComparison,
  writeDevices
} from "./ScenePart.ts"

export const Trigger = Schema.TaggedUnion({
  /** A report changes the stored value of a property, or is the first to give it one. */
  Property: {
    ...ofDevices,
    /** Or `*`. */
    propertyId: Schema.String,
    ...ofValue
  },
  /** A device reports an event. */
  Event: {
    ...ofDevices,
    /** Or `*`. */
    eventId: Schema.String,
    /** The output of the event that is compared. */
    propertyId: Schema.NullOr(Schema.String),
    ...ofValue
  },
  /** A device goes online or offline, or stays so. */
  Status: {
    ...ofDevices,
    status: WatchedStatus,
    /** For how many minutes it has to stay so. Absent: the change itself fires the scene. */
    minutes: Schema.optionalKey(Schema.Finite)
  },
  /** The time has come. */
  Cron: {
    cronId: Schema.String,
    cron: Schema.String,
    /** By its IANA name. Absent: that of the cloud, `SceneTimeZone`. */
    timeZone: Schema.optionalKey(Schema.String),
    /** What the maker of the scene has named. It changes nothing, and comes back. */
    productKey: Schema.optionalKey(Schema.String),
    deviceName: Schema.optionalKey(Schema.String)
  }
})
export type Trigger = typeof Trigger.Type

/** A trigger that devices set off. */
export type DeviceTrigger = Exclude<Trigger, { readonly _tag: "Cron" }>

/** How long a status may have to last, minutes: 30 days. */
export const maxStatusMinutes = 43_200

/** The parameters of each kind of trigger. */
export const triggerParams = {
  "trigger/device/property": {
    ...deviceParams,
    property_id: Schema.optional(Name).annotate({ description: "`*`, the default: any property" }),
    ...comparisonParams
  },
  "trigger/device/event": {
    ...deviceParams,
    event_id: Schema.optional(Name).annotate({ description: "`*`, the default: any event" }),
    property_id: Schema.optional(Name).annotate({ description: "The output of the event that is compared" }),
    ...comparisonParams
  },
  "trigger/device/status": {
    ...deviceParams,
    status: OrEmpty(WatchedStatus).annotate({ description: "`*`, the default: any change" }),
    status_duration: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxStatusMinutes })))
      .annotate({ description: "Minutes that the device has to stay `online` or `offline`; 0, the default: none" })
  },
  "trigger/cron": {
    product_key: Schema.optional(Name).annotate({ description: "Kept, and without effect" }),
    device_name: Schema.optional(Name).annotate({ description: "Kept, and without effect" }),
    cron: Text(128).annotate({ description: "Six fields, seconds first; five are accepted" }),
    time_zone: Schema.optional(Text(64)).annotate({
      description: "IANA name, such as `Europe/Berlin`; default: that of the cloud, UTC unless it is set"
    })
  }
} as const

export const TriggerUri = Schema.Literals([
  "trigger/device/property",
  "trigger/device/event",
  "trigger/device/status",
  "trigger/cron"
])
export type TriggerUri = typeof TriggerUri.Type

/** A trigger as the API returns it: one variant for each URI. */
export const TriggerRecord = Schema.Union([
  partRecord("trigger/device/property", triggerParams["trigger/device/property"]),
  partRecord("trigger/device/event", triggerParams["trigger/device/event"]),
  partRecord("trigger/device/status", triggerParams["trigger/device/status"]),
  partRecord("trigger/cron", {
    ...triggerParams["trigger/cron"],
    cron_id: Schema.optional(Schema.String).annotate({ description: "Chosen by the cloud; ignored in a draft" })
  })
]).annotate({ identifier: "SceneTrigger" })
export type TriggerRecord = typeof TriggerRecord.Type

/** Reads a trigger. The id of a cron trigger is empty until the scene is stored. */
export const readTrigger = (uri: TriggerUri, params: ParamsReader): Trigger => {
  switch (uri) {
    case "trigger/device/property":
      return {
        _tag: "Property",
        ...params.devices(),
        propertyId: params.text("property_id", wildcard),
        comparison: params.comparison()
      }
    case "trigger/device/event": {
      const comparison = params.comparison()
      const propertyId = params.text("property_id", "")
      if (comparison !== null && propertyId === "") {
        params.refuse("property_id", "Expected the output of the event that is compared")
      }
      return {
        _tag: "Event",
        ...params.devices(),
        eventId: params.text("event_id", wildcard),
        propertyId: propertyId === "" ? null : propertyId,
        comparison
      }
    }
    case "trigger/device/status": {
      const status = params.text("status", wildcard) as WatchedStatus
      const minutes = params.number("status_duration")
      if (minutes > 0 && status === wildcard) {
        params.refuse("status", "Expected online or offline, since there is a status_duration")
      }
      return { _tag: "Status", ...params.devices(), status, ...minutes === 0 ? {} : { minutes } }
    }
    case "trigger/cron":
      return {
        _tag: "Cron",
        cronId: "",
        cron: params.text("cron"),
        ...params.given({ time_zone: "timeZone", product_key: "productKey", device_name: "deviceName" })
      }
  }
}

/** Writes a trigger as the API returns it. */
export const encodeTrigger = (trigger: Trigger): TriggerRecord => {
  switch (trigger._tag) {
    case "Property":
      return {
        URI: "trigger/device/property",
        params: { ...writeDevices(trigger), property_id: trigger.propertyId, ...writeComparison(trigger.comparison) }
      }
    case "Event":
      return {
        URI: "trigger/device/event",
        params: {
          ...writeDevices(trigger),
          event_id: trigger.eventId,
          ...trigger.propertyId === null ? {} : { property_id: trigger.propertyId },
          ...writeComparison(trigger.comparison)
        }
      }
    case "Status":
      return {
        URI: "trigger/device/status",
        params: {
          ...writeDevices(trigger),
          status: trigger.status,
          ...trigger.minutes === undefined ? {} : { status_duration: trigger.minutes }
        }
      }
    case "Cron":
      return {
        URI: "trigger/cron",
        params: {
          cron: trigger.cron,
          cron_id: trigger.cronId,
          ...trigger.timeZone === undefined ? {} : { time_zone: trigger.timeZone },
          ...trigger.productKey === undefined ? {} : { product_key: trigger.productKey },
          ...trigger.deviceName === undefined ? {} : { device_name: trigger.deviceName }
        }
      }
  }
}
