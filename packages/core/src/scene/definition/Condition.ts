/**
 * Conditions: what must hold for a scene that was fired to act. All of them must.
 */
import { Schema } from "effect"
import { Text } from "../../kernel/Text.ts"
import { everyDay, expectedTimeOfDay, isTimeOfDay, TimeWindow, Weekday } from "../../kernel/TimeWindow.ts"
import { expectedTimeZone, isTimeZone } from "../../kernel/TimeZone.ts"
import { customFields, customRecord } from "./CustomPart.ts"
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

export const Condition = Schema.TaggedUnion({
  /** The latest reported value of a property compares like this. */
  Property: {
    ...ofDevices,
    /** Or `*`: one of the properties is enough. */
    propertyId: Schema.String,
    ...ofValue
  },
  /** A device has a status. */
  Status: {
    ...ofDevices,
    status: WatchedStatus,
    /** For how many minutes at least. */
    minutes: Schema.Finite
  },
  /** The present lies between two moments, Unix seconds, both inclusive. */
  TimeRange: { start: Schema.Finite, end: Schema.Finite },
  /** The present lies in a window that comes every day or on days of the week. */
  TimeWindow: {
    ...TimeWindow.fields,
    /** By its IANA name. Absent: that of the cloud, `SceneTimeZone`. */
    timeZone: Schema.optionalKey(Schema.String)
  },
  /** Whatever the application that registered the URI makes of the parameters. */
  Custom: customFields
})
export type Condition = typeof Condition.Type

export type CustomCondition = Condition & { readonly _tag: "Custom" }

const SecondsOfTime = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8_640_000_000_000 }))

const TimeRange = Schema.Struct({ start_timestamp: SecondsOfTime, end_timestamp: SecondsOfTime })

/** The parameters of each kind of condition that is built in. */
export const conditionParams = {
  "condition/device/property": {
    ...deviceParams,
    property_id: Schema.optional(Name).annotate({ description: "`*`, the default: any property" }),
    ...comparisonParams
  },
  "condition/device/status": {
    ...deviceParams,
    status: OrEmpty(WatchedStatus).annotate({ description: "`*`, the default: any status" }),
    status_duration: Schema.optional(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5_256_000 })).annotate({ description: "Minutes" })
    )
  },
  "condition/time/range": {
    product_key: Schema.optional(Name).annotate({ description: "Ignored" }),
    device_name: Schema.optional(Name).annotate({ description: "Ignored" }),
    time_range: TimeRange.annotate({ description: "Unix seconds, both inclusive" })
  },
  "condition/time/window": {
    start: Text(5).annotate({ description: "HH:MM, from 00:00 to 23:59" }),
    end: Text(5).annotate({ description: "HH:MM, exclusive; not after `start`: on the following day" }),
    days: Schema.optional(Schema.Array(Weekday).check(Schema.isMaxLength(7))).annotate({
      description: "The days on which the window begins; default: every day"
    }),
    time_zone: Schema.optional(Text(64)).annotate({
      description: "IANA name, such as `Europe/Berlin`; default: that of the cloud, UTC unless it is set"
    })
  }
} as const

/** The URI of a condition that is built in. */
export const ConditionUri = Schema.Literals([
  "condition/device/property",
  "condition/device/status",
  "condition/time/range",
  "condition/time/window"
])
export type ConditionUri = typeof ConditionUri.Type

/** A condition as the API returns it: one variant for each URI that is built in, and one for custom conditions. */
export const ConditionRecord = Schema.Union([
  partRecord("condition/device/property", conditionParams["condition/device/property"]),
  partRecord("condition/device/status", conditionParams["condition/device/status"]),
  partRecord("condition/time/range", conditionParams["condition/time/range"]),
  partRecord("condition/time/window", conditionParams["condition/time/window"]),
  customRecord("condition", ConditionUri.literals)
]).annotate({ identifier: "SceneCondition" })
export type ConditionRecord = typeof ConditionRecord.Type

/** Reads a condition that is built in. */
export const readCondition = (uri: ConditionUri, params: ParamsReader): Condition => {
  switch (uri) {
    case "condition/device/property":
      return {
        _tag: "Property",
        ...params.devices(),
        propertyId: params.text("property_id", wildcard),
        comparison: params.comparison()
      }
    case "condition/device/status":
      return {
        _tag: "Status",
        ...params.devices(),
        status: params.text("status", wildcard) as WatchedStatus,
        minutes: params.number("status_duration")
      }
    case "condition/time/range": {
      const range = params.value("time_range") as typeof TimeRange.Type | undefined
      if (range === undefined) params.refuse("time_range", "Expected {start_timestamp, end_timestamp}")
      else if (range.start_timestamp > range.end_timestamp) {
        params.refuse("time_range", "Expected a start_timestamp that is not after end_timestamp")
      }
      return { _tag: "TimeRange", start: range?.start_timestamp ?? 0, end: range?.end_timestamp ?? 0 }
    }
    case "condition/time/window": {
      const [start, end] = [params.text("start", ""), params.text("end", "")]
      if (!isTimeOfDay(start)) params.refuse("start", expectedTimeOfDay)
      if (!isTimeOfDay(end)) params.refuse("end", expectedTimeOfDay)
      const named = params.value("days") as ReadonlyArray<Weekday> | undefined ?? []
      const zone = params.given({ time_zone: "timeZone" })
      if (zone.timeZone !== undefined && !isTimeZone(zone.timeZone)) params.refuse("time_zone", expectedTimeZone)
      const days = everyDay.filter((day) => named.length === 0 || named.includes(day))
      return { _tag: "TimeWindow", start, end, days, ...zone }
    }
  }
}

/** Writes a condition as the API returns it. */
export const encodeCondition = (condition: Condition): ConditionRecord => {
  switch (condition._tag) {
    case "Property":
      return {
        URI: "condition/device/property",
        params: {
          ...writeDevices(condition),
          property_id: condition.propertyId,
          ...writeComparison(condition.comparison)
        }
      }
    case "Status":
      return {
        URI: "condition/device/status",
        params: { ...writeDevices(condition), status: condition.status, status_duration: condition.minutes }
      }
    case "TimeRange":
      return {
        URI: "condition/time/range",
        params: { time_range: { start_timestamp: condition.start, end_timestamp: condition.end } }
      }
    case "TimeWindow": {
      const { days, end, start, timeZone } = condition
      return {
        URI: "condition/time/window",
        params: { start, end, days, ...timeZone === undefined ? {} : { time_zone: timeZone } }
      }
    }
    case "Custom":
      return { URI: condition.uri, params: condition.params }
  }
}
