/**
 * Decides whether an event fires a scene, and says why: each trigger and condition
 * with the value that was found, where it was found and as of when.
 */
import type { DeviceStatus } from "../../device/Device.ts"
import type { ShadowSide } from "../../shadow/Shadow.ts"
import { isFiniteJson, type Json } from "../../kernel/Json.ts"
import { describeWindow, isOpen, localTime } from "../../kernel/TimeWindow.ts"
import { type Comparison, compileComparison } from "../definition/Comparison.ts"
import type { ChangedDevice } from "../../events/DeviceChange.ts"
import type { Condition, CustomCondition } from "../definition/Condition.ts"
import type { Scene } from "../definition/Scene.ts"
import { wildcard } from "../definition/ScenePart.ts"
import type { Trigger } from "../definition/Trigger.ts"
import { deviceOf, outputOf, type SceneEvent } from "../matching/SceneEvent.ts"

/** What was found about a trigger or condition, and what follows. */
export interface Finding {
  /** `skipped`: its device is gone or disabled. A part that is skipped counts for nothing. */
  readonly verdict: "holds" | "fails" | "skipped"
  /** The value that was found. Absent: nothing was found. */
  readonly value?: Json
  /** The value before, of a property that a report has changed. */
  readonly previous?: Json
  /** Where the value was found: `report`, `event`, `status`, `shadow`, `clock`, `timer`, `none`, or what a custom condition names. */
  readonly source: string
  /** As of when the value holds, Unix milliseconds; null: unknown. */
  readonly time: number | null
  /** A sentence. */
  readonly reason: string
}

/** Objects and arrays inside each other in a value that was found. */
const maxNesting = 128

const isValue = (value: unknown): boolean => value === undefined || isFiniteJson(value as Json, maxNesting)

export const isFinding = (value: unknown): value is Finding => {
  if (typeof value !== "object" || value === null) return false
  const { previous, reason, source, time, verdict, value: found } = value as Partial<Record<keyof Finding, unknown>>
  return (verdict === "holds" || verdict === "fails" || verdict === "skipped") && typeof source === "string" &&
    (time === null || Number.isFinite(time)) && typeof reason === "string" && isValue(found) && isValue(previous)
}

/** What an event makes of a scene. */
export interface Verdict {
  readonly fires: boolean
  /** A sentence. */
  readonly reason: string
  readonly triggers: ReadonlyArray<Finding & { readonly trigger: Trigger }>
  readonly conditions: ReadonlyArray<Finding & { readonly condition: Condition }>
}

/** What is known of a device that a condition is about. */
export interface DeviceFacts {
  readonly status: DeviceStatus
  /** Unix milliseconds; null: it has never changed. */
  readonly statusChangedAt: number | null
  readonly reported: ShadowSide
}

/** What is known when the conditions are judged. */
export interface SceneFacts {
  /** Unix milliseconds. */
  readonly now: number
  /** Of windows of time that have none of their own, by its IANA name. */
  readonly timeZone: string
  /** Of the devices that the conditions name. */
  readonly device: (productKey: string, deviceName: string) => DeviceFacts | "deleted" | "disabled"
  /** What each custom condition of the scene has found. */
  readonly custom: (condition: CustomCondition) => Finding
}

const nowhere = { source: "none", time: null } as const

const textOf = (value: Json): string => {
  const text = JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const wanted = (comparison: Comparison | null): string =>
  comparison === null ? "anything" : `${comparison.type} ${comparison.value}`

/** Compares a value with what is wanted of it. */
const compared = (
  name: string,
  value: Json,
  comparison: Comparison | null
): Pick<Finding, "verdict" | "value" | "reason"> => {
  const holds = comparison === null || compileComparison(comparison)(value)
  return {
    verdict: holds ? "holds" : "fails",
    value,
    reason: `${name} is ${textOf(value)}; wanted: ${wanted(comparison)}`
  }
}

const concerns = (
  trigger: { readonly productKey: string; readonly deviceName: string },
  event: { readonly device: ChangedDevice }
) =>
  trigger.productKey === event.device.productKey &&
  (trigger.deviceName === wildcard || trigger.deviceName === event.device.deviceName)

const otherEvent = (reason: string): Finding => ({ ...nowhere, verdict: "fails", reason })

const otherDevice = otherEvent("The event is of another device")

/** Returns the finding that holds, or else the first. */
const best = (findings: ReadonlyArray<Finding>): Finding | undefined =>
  findings.find(({ verdict }) => verdict === "holds") ?? findings[0]

const judgeTrigger = (trigger: Trigger, event: SceneEvent): Finding => {
  switch (trigger._tag) {
    case "Property": {
      if (event._tag !== "PropertiesChanged") return otherEvent("No report has changed a property")
      if (!concerns(trigger, event)) return otherDevice
      const ids = trigger.propertyId === wildcard
        ? Object.keys(event.properties)
        : Object.hasOwn(event.properties, trigger.propertyId)
        ? [trigger.propertyId]
        : []
      return best(ids.map((id) => {
        const changed = event.properties[id]!
        return {
          source: "report",
          time: changed.time,
          ...changed.previous === undefined ? {} : { previous: changed.previous },
          ...compared(id, changed.value, trigger.comparison)
        }
      })) ?? otherEvent("The report has not changed this property")
    }
    case "Event": {
      if (event._tag !== "EventReported") return otherEvent("No event was reported")
      if (!concerns(trigger, event)) return otherDevice
      if (trigger.eventId !== wildcard && trigger.eventId !== event.eventId) {
        return otherEvent(`It is the event ${event.eventId}`)
      }
      const found = { source: "event", time: event.time } as const
      const { comparison, propertyId } = trigger
      if (propertyId === null || comparison === null) {
        return { ...found, verdict: "holds", value: event.value, reason: `The event ${event.eventId} was reported` }
      }
      const output = outputOf(event.value, propertyId)
      return output === undefined
        ? { ...found, verdict: "fails", reason: `The event carries no ${propertyId}` }
        : { ...found, ...compared(propertyId, output, comparison) }
    }
    case "Status": {
      if (trigger.minutes !== undefined) return judgeLasting(trigger, trigger.minutes, event)
      if (event._tag !== "StatusChanged") return otherEvent("No status has changed")
      if (!concerns(trigger, event)) return otherDevice
      const holds = trigger.status === wildcard || trigger.status === event.status
      return {
        verdict: holds ? "holds" : "fails",
        value: event.status,
        source: "status",
        time: event.at,
        reason: `The device went ${event.status}; wanted: ${
          trigger.status === wildcard ? "any change" : trigger.status
        }`
      }
    }
    case "Cron":
      return event._tag === "CronTicked" && event.cronId === trigger.cronId
        ? { verdict: "holds", value: trigger.cron, source: "timer", time: event.at, reason: reasonOfTimer(trigger) }
        : otherEvent("Its time has not come")
  }
}

const judgeLasting = (
  trigger: Trigger & { readonly _tag: "Status" },
  minutes: number,
  event: SceneEvent
): Finding => {
  const wanted = `${trigger.status} for ${minutes} minutes`
  if (event._tag !== "StatusLasted") return otherEvent(`Nothing was ${wanted}`)
  if (!concerns(trigger, event)) return otherDevice
  return {
    verdict: event.status === trigger.status && event.minutes === minutes ? "holds" : "fails",
    value: event.status,
    source: "status",
    time: event.since,
    reason: `The device was ${event.status} for ${event.minutes} minutes; wanted: ${wanted}`
  }
}

const reasonOfTimer = ({ timeZone }: Trigger & { readonly _tag: "Cron" }): string =>
  timeZone === undefined ? "It was time" : `It was time in ${timeZone}`

const gone = { deleted: "does not exist", disabled: "is disabled" } as const

/** Returns what is known of the device of a condition, or what follows when nothing is known. */
const lookUp = (
  { deviceName, productKey }: { readonly productKey: string; readonly deviceName: string },
  event: SceneEvent,
  facts: SceneFacts
): DeviceFacts | Finding => {
  const fired = deviceOf(event)
  const name = deviceName === wildcard ? fired?.deviceName : deviceName
  if (name === undefined || (deviceName === wildcard && fired?.productKey !== productKey)) {
    return { ...nowhere, verdict: "fails", reason: "No device of this product has fired the scene" }
  }
  const known = facts.device(productKey, name)
  return typeof known === "string"
    ? { ...nowhere, verdict: "skipped", reason: `Device ${productKey}/${name} ${gone[known]}` }
    : known
}

const millisPerMinute = 60_000

const judgeCondition = (condition: Condition, event: SceneEvent, facts: SceneFacts): Finding => {
  if (condition._tag === "TimeRange") {
    const seconds = Math.floor(facts.now / 1000)
    return {
      verdict: condition.start <= seconds && seconds <= condition.end ? "holds" : "fails",
      value: seconds,
      source: "clock",
      time: facts.now,
      reason: `It is ${seconds}; wanted: ${condition.start} to ${condition.end}`
    }
  }
  if (condition._tag === "TimeWindow") {
    const { timeZone = facts.timeZone } = condition
    const local = localTime(facts.now, timeZone)
    const value = `${local.day} ${local.time}`
    return {
      verdict: isOpen(condition, local) ? "holds" : "fails",
      value,
      source: "clock",
      time: facts.now,
      reason: `It is ${value} in ${timeZone}; wanted: ${describeWindow(condition)}`
    }
  }
  if (condition._tag === "Custom") return facts.custom(condition)
  const known = lookUp(condition, event, facts)
  if ("verdict" in known) return known
  if (condition._tag === "Status") {
    const minutes = known.statusChangedAt === null
      ? 0
      : Math.floor((facts.now - known.statusChangedAt) / millisPerMinute)
    const isStatus = condition.status === wildcard || condition.status === known.status
    const since = condition.minutes === 0 ? "" : ` for ${minutes} minutes`
    const atLeast = condition.minutes === 0 ? "" : ` for at least ${condition.minutes} minutes`
    return {
      verdict: isStatus && minutes >= condition.minutes ? "holds" : "fails",
      value: known.status,
      source: "status",
      time: known.statusChangedAt,
      reason: `The device is ${known.status}${since}; wanted: ${
        condition.status === wildcard ? "any status" : condition.status
      }${atLeast}`
    }
  }
  const ids = condition.propertyId === wildcard
    ? Object.keys(known.reported)
    : Object.hasOwn(known.reported, condition.propertyId)
    ? [condition.propertyId]
    : []
  return best(ids.map((id) => {
    const { time, value } = known.reported[id]!
    return { source: "shadow", time, ...compared(id, value, condition.comparison) }
  })) ?? { ...nowhere, verdict: "fails", reason: `The device has not reported ${condition.propertyId}` }
}

/** Judges the event by the rules of the scene alone, whether or not the scene is enabled. */
export const evaluate = (
  { conditions, triggers }: Pick<Scene, "triggers" | "conditions">,
  event: SceneEvent,
  facts: SceneFacts
): Verdict => {
  const found = {
    triggers: triggers.map((trigger) => ({ trigger, ...judgeTrigger(trigger, event) })),
    conditions: conditions.map((condition) => ({ condition, ...judgeCondition(condition, event, facts) }))
  }
  if (event._tag === "RunByHand") return { fires: true, reason: "It was run by hand", ...found }
  if (event._tag !== "RunByScene" && !found.triggers.some(({ verdict }) => verdict === "holds")) {
    return { fires: false, reason: "No trigger has fired", ...found }
  }
  const failing = found.conditions.findIndex(({ verdict }) => verdict === "fails")
  return failing < 0
    ? { fires: true, reason: "A trigger has fired and all conditions hold", ...found }
    : {
      fires: false,
      reason: `Condition ${failing + 1} does not hold: ${found.conditions[failing]!.reason}`,
      ...found
    }
}
