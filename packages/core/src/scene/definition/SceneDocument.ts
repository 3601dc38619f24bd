/**
 * Scenes as they are written down (specification, Scene): each trigger,
 * condition and action is a `URI` and its `params`.
 */
import { Cron, Effect, Result, Schema } from "effect"
import type { DeviceId, DeviceName } from "../../device/Device.ts"
import { type InputIssue, InvalidInput } from "../../kernel/InvalidInput.ts"
import type { ProductKey } from "../../product/Product.ts"
import { NonBlankText, Text } from "../../kernel/Text.ts"
import { CompareType, type Comparison, refuseComparison } from "./Comparison.ts"
import {
  type Action,
  type Condition,
  maxActions,
  maxConditions,
  maxTriggers,
  type SceneId,
  type SceneRules,
  SceneStatus,
  type Trigger,
  type WatchedStatus,
  WebhookMethod,
  wildcard
} from "./Scene.ts"

/** An empty text stands for a parameter that is left out. */
const OrEmpty = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.Union([schema, Schema.Literal("")]))

const Identifier = Schema.optional(Text(128))

const SecondsOfTime = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8_640_000_000_000 }))

const deviceParams = {
  type: Schema.optional(Text(64).annotate({ description: "As the URI" })),
  product_key: Identifier,
  device_name: Identifier.annotate({ description: "`*`: any device of the product" }),
  property_id: Identifier.annotate({ description: "`*`: any property" }),
  status: OrEmpty(Schema.Literals(["online", "offline", wildcard])),
  compare_type: OrEmpty(CompareType),
  compare_val: Schema.optional(Text(1024))
}

export const TriggerUri = Schema.Literals([
  "trigger/device/property",
  "trigger/device/event",
  "trigger/device/status",
  "trigger/cron"
])

export const TriggerDocument = Schema.Struct({
  URI: TriggerUri,
  params: Schema.Struct({
    ...deviceParams,
    event_id: Identifier.annotate({ description: "`*`: any event" }),
    cron: Schema.optional(Text(128).annotate({ description: "Six fields, seconds first; five are accepted" }))
  })
})
export interface TriggerDocument extends Schema.Schema.Type<typeof TriggerDocument> {}

export const ConditionUri = Schema.Literals([
  "condition/device/property",
  "condition/device/status",
  "condition/time/range"
])

export const ConditionDocument = Schema.Struct({
  URI: ConditionUri,
  params: Schema.Struct({
    ...deviceParams,
    status_duration: Schema.optional(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5_256_000 })).annotate({ description: "Minutes" })
    ),
    time_range: Schema.optional(Schema.Struct({ start_timestamp: SecondsOfTime, end_timestamp: SecondsOfTime }))
  })
})
export interface ConditionDocument extends Schema.Schema.Type<typeof ConditionDocument> {}

export const ActionUri = Schema.Literals([
  "action/device/property",
  "action/device/service",
  "action/rule",
  "action/webhook"
])

/** Seconds, at most 60; 0: the default. */
const Timeout = Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })))

export const ActionDocument = Schema.Struct({
  URI: ActionUri,
  params: Schema.Struct({
    type: deviceParams.type,
    scene_id: Identifier,
    device_id: Identifier,
    service_id: Identifier,
    property_id: Identifier,
    items: Schema.optional(Schema.Record(Schema.String, Schema.Json)),
    URL: Schema.optional(Text(2048)),
    method: OrEmpty(WebhookMethod),
    desc: Schema.optional(Text(1024)),
    connect_timeout: Timeout.annotate({ description: "Seconds; default 5" }),
    request_timeout: Timeout.annotate({ description: "Seconds; default 10" })
  })
})
export interface ActionDocument extends Schema.Schema.Type<typeof ActionDocument> {}

/** What the maker of a scene decides. */
export const SceneDraft = Schema.Struct({
  name: NonBlankText(128),
  desc: Schema.optional(Text(1024)),
  status: SceneStatus,
  triggers: Schema.optional(Schema.Array(TriggerDocument).check(Schema.isMaxLength(maxTriggers))),
  conditions: Schema.optional(Schema.Array(ConditionDocument).check(Schema.isMaxLength(maxConditions))),
  actions: Schema.optional(Schema.Array(ActionDocument).check(Schema.isMaxLength(maxActions)))
})
export interface SceneDraft extends Schema.Schema.Type<typeof SceneDraft> {}

type Params = Readonly<Record<string, unknown>>

/** What the parameters of each URI are, beside `type`. The last two carry the device too, as many write it. */
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  "trigger/device/property": ["product_key", "device_name", "property_id", "compare_type", "compare_val"],
  "trigger/device/event": ["product_key", "device_name", "event_id", "property_id", "compare_type", "compare_val"],
  "trigger/device/status": ["product_key", "device_name", "status"],
  "condition/device/property": ["product_key", "device_name", "property_id", "compare_type", "compare_val"],
  "condition/device/status": ["product_key", "device_name", "status", "status_duration"],
  "action/device/property": ["device_id", "property_id", "items"],
  "action/device/service": ["device_id", "service_id", "items"],
  "action/rule": ["scene_id"],
  "action/webhook": ["URL", "method", "desc", "connect_timeout", "request_timeout"],
  "trigger/cron": ["product_key", "device_name", "cron"],
  "condition/time/range": ["product_key", "device_name", "time_range"]
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== "" && value !== 0

/** The parameters of one part of a scene, and what is wrong with them. */
class Part {
  readonly issues: Array<InputIssue> = []
  readonly #list: string
  readonly #position: number
  readonly #params: Params

  constructor(list: string, position: number, uri: string, params: Params) {
    this.#list = list
    this.#position = position
    this.#params = params
    if (isGiven(params["type"]) && params["type"] !== uri) this.refuse("type", `Expected ${uri}, as the URI`)
    for (const [name, value] of Object.entries(params)) {
      if (name !== "type" && isGiven(value) && !known[uri]!.includes(name)) {
        this.refuse(name, `Expected nothing: ${uri} has no such parameter`)
      }
    }
  }

  refuse(name: string, message: string): void {
    this.issues.push({ path: [this.#list, this.#position, "params", name], message })
  }

  text(name: string, fallback?: string): string {
    const value = this.#params[name]
    if (typeof value === "string" && value !== "") return value
    if (fallback === undefined) this.refuse(name, "Expected a text that is not empty")
    return fallback ?? ""
  }

  number(name: string): number {
    return this.#params[name] as number | undefined ?? 0
  }

  /** Whatever its type is. */
  value(name: string): unknown {
    return this.#params[name]
  }

  get devices() {
    return {
      productKey: this.text("product_key") as ProductKey,
      deviceName: this.text("device_name") as DeviceName | typeof wildcard
    }
  }

  get comparison(): Comparison | null {
    const type = this.text("compare_type", "")
    const value = this.text("compare_val", "")
    if (type === "") {
      if (value !== "") this.refuse("compare_type", "Expected one, since there is a compare_val")
      return null
    }
    const comparison = { type: type as CompareType, value }
    const reason = refuseComparison(comparison)
    if (reason !== undefined) this.refuse("compare_val", reason)
    return comparison
  }
}

/** The expression as a schedule, or why it is none. It may be one that never comes. */
export const parseCron = (expression: string, timeZone: string): Result.Result<Cron.Cron, string> =>
  Result.mapError(
    Cron.parse(expression, timeZone),
    ({ message }) => `Expected a cron expression of six fields, seconds first, or of five (${message})`
  )

/** The next time after `after` (Unix milliseconds); null: there is none. */
export const nextTime = (expression: string, timeZone: string, after: number): number | null =>
  Result.match(parseCron(expression, timeZone), {
    onFailure: () => null,
    onSuccess: (cron) => {
      try {
        return Cron.next(cron, after).getTime()
      } catch {
        return null
      }
    }
  })

const decodeTrigger = (part: Part, uri: typeof TriggerUri.Type): Trigger => {
  switch (uri) {
    case "trigger/device/property":
      return {
        _tag: "Property",
        ...part.devices,
        propertyId: part.text("property_id", wildcard),
        comparison: part.comparison
      }
    case "trigger/device/event": {
      const { comparison } = part
      const propertyId = part.text("property_id", "")
      if (comparison !== null && propertyId === "") {
        part.refuse("property_id", "Expected the output of the event that is compared")
      }
      return {
        _tag: "Event",
        ...part.devices,
        eventId: part.text("event_id", wildcard),
        propertyId: propertyId === "" ? null : propertyId,
        comparison
      }
    }
    case "trigger/device/status":
      return { _tag: "Status", ...part.devices, status: part.text("status", wildcard) as WatchedStatus }
    case "trigger/cron":
      return { _tag: "Cron", cronId: "", cron: part.text("cron") }
  }
}

const decodeCondition = (part: Part, uri: typeof ConditionUri.Type): Condition => {
  switch (uri) {
    case "condition/device/property":
      return {
        _tag: "Property",
        ...part.devices,
        propertyId: part.text("property_id", wildcard),
        comparison: part.comparison
      }
    case "condition/device/status":
      return {
        _tag: "Status",
        ...part.devices,
        status: part.text("status", wildcard) as WatchedStatus,
        minutes: part.number("status_duration")
      }
    case "condition/time/range": {
      const range = part.value("time_range") as ConditionDocument["params"]["time_range"]
      if (range === undefined) part.refuse("time_range", "Expected {start_timestamp, end_timestamp}")
      else if (range.start_timestamp > range.end_timestamp) {
        part.refuse("time_range", "Expected a start_timestamp that is not after end_timestamp")
      }
      return { _tag: "TimeRange", start: range?.start_timestamp ?? 0, end: range?.end_timestamp ?? 0 }
    }
  }
}

const itemsOf = (part: Part) => (part.value("items") ?? {}) as NonNullable<ActionDocument["params"]["items"]>

const decodeAction = (part: Part, uri: typeof ActionUri.Type): Action => {
  switch (uri) {
    case "action/device/property": {
      const items = itemsOf(part)
      const propertyId = part.text("property_id", "")
      if (Object.keys(items).length === 0) part.refuse("items", "Expected at least one property with its value")
      else if (propertyId !== "" && !Object.hasOwn(items, propertyId)) {
        part.refuse("items", `Expected a value for ${propertyId}, the property_id`)
      }
      return { _tag: "SetProperties", deviceId: part.text("device_id") as DeviceId, propertyId, items }
    }
    case "action/device/service":
      return {
        _tag: "CallService",
        deviceId: part.text("device_id") as DeviceId,
        serviceId: part.text("service_id"),
        items: itemsOf(part)
      }
    case "action/rule":
      return { _tag: "RunScene", sceneId: part.text("scene_id") as SceneId }
    case "action/webhook":
      return {
        _tag: "Webhook",
        url: part.text("URL"),
        method: part.text("method") as WebhookMethod,
        desc: part.text("desc", ""),
        connectTimeout: part.number("connect_timeout") || null,
        requestTimeout: part.number("request_timeout") || null
      }
  }
}

/** The rules of a draft; cron triggers have no ids yet. Fails with all that is wrong in itself. */
export const decodeRules = (draft: SceneDraft): Effect.Effect<SceneRules, InvalidInput> =>
  Effect.suspend(() => {
    const issues: Array<InputIssue> = []
    const decode = <Document extends { readonly URI: string; readonly params: Params }, A>(
      list: string,
      documents: ReadonlyArray<Document> = [],
      decodeOne: (part: Part, uri: Document["URI"]) => A
    ): ReadonlyArray<A> =>
      documents.map(({ URI, params }, position) => {
        const part = new Part(list, position, URI, params)
        const decoded = decodeOne(part, URI)
        issues.push(...part.issues)
        return decoded
      })
    const rules: SceneRules = {
      triggers: decode("triggers", draft.triggers, decodeTrigger),
      conditions: decode("conditions", draft.conditions, decodeCondition),
      actions: decode("actions", draft.actions, decodeAction)
    }
    const [first, ...rest] = issues
    return first === undefined ? Effect.succeed(rules) : Effect.fail(new InvalidInput({ issues: [first, ...rest] }))
  })

const compareParams = (comparison: Comparison | null) =>
  comparison === null ? {} : { compare_type: comparison.type, compare_val: comparison.value }

const deviceOf = ({ deviceName, productKey }: { readonly productKey: string; readonly deviceName: string }) => ({
  product_key: productKey,
  device_name: deviceName
})

/** A trigger as it is read: that of a timer has an id. */
export const encodeTrigger = (trigger: Trigger) => {
  switch (trigger._tag) {
    case "Property":
      return {
        URI: "trigger/device/property",
        params: { ...deviceOf(trigger), property_id: trigger.propertyId, ...compareParams(trigger.comparison) }
      }
    case "Event":
      return {
        URI: "trigger/device/event",
        params: {
          ...deviceOf(trigger),
          event_id: trigger.eventId,
          ...trigger.propertyId === null ? {} : { property_id: trigger.propertyId },
          ...compareParams(trigger.comparison)
        }
      }
    case "Status":
      return { URI: "trigger/device/status", params: { ...deviceOf(trigger), status: trigger.status } }
    case "Cron":
      return { URI: "trigger/cron", params: { cron: trigger.cron, cron_id: trigger.cronId } }
  }
}

export const encodeCondition = (condition: Condition) => {
  switch (condition._tag) {
    case "Property":
      return {
        URI: "condition/device/property",
        params: { ...deviceOf(condition), property_id: condition.propertyId, ...compareParams(condition.comparison) }
      }
    case "Status":
      return {
        URI: "condition/device/status",
        params: { ...deviceOf(condition), status: condition.status, status_duration: condition.minutes }
      }
    case "TimeRange":
      return {
        URI: "condition/time/range",
        params: { time_range: { start_timestamp: condition.start, end_timestamp: condition.end } }
      }
  }
}

export const encodeAction = (action: Action) => {
  switch (action._tag) {
    case "SetProperties": {
      const { deviceId, items, propertyId } = action
      return {
        URI: "action/device/property",
        params: { device_id: deviceId, ...propertyId === "" ? {} : { property_id: propertyId }, items }
      }
    }
    case "CallService":
      return {
        URI: "action/device/service",
        params: { device_id: action.deviceId, service_id: action.serviceId, items: action.items }
      }
    case "RunScene":
      return { URI: "action/rule", params: { scene_id: action.sceneId } }
    case "Webhook": {
      const { connectTimeout, desc, method, requestTimeout, url } = action
      return {
        URI: "action/webhook",
        params: {
          URL: url,
          method,
          ...desc === "" ? {} : { desc },
          ...connectTimeout === null ? {} : { connect_timeout: connectTimeout },
          ...requestTimeout === null ? {} : { request_timeout: requestTimeout }
        }
      }
    }
  }
}
