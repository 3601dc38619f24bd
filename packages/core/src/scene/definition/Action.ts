/**
 * Actions: what a scene does, one after the other.
 */
import { Schema } from "effect"
import { DeviceId } from "../../device/Device.ts"
import { Text } from "../../kernel/Text.ts"
import { maxTemplate, refuseTemplate } from "./BodyTemplate.ts"
import { customFields, customRecord } from "./CustomPart.ts"
import { SceneId } from "./SceneId.ts"
import { Name, type ParamsReader, partRecord } from "./ScenePart.ts"

export const WebhookMethod = Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])
export type WebhookMethod = typeof WebhookMethod.Type

/** How long the delays of a scene may be together, seconds: 12 hours. */
export const maxDelay = 43_200

const Items = Schema.Record(Schema.String, Schema.Json)

export const Action = Schema.TaggedUnion({
  /** Sets properties of a device. */
  SetProperties: {
    deviceId: DeviceId,
    /** One of the items, or empty. It changes nothing. */
    propertyId: Schema.String,
    /** The value of each property. */
    items: Items
  },
  /** Calls an asynchronous service of a device. */
  CallService: {
    deviceId: DeviceId,
    serviceId: Schema.String,
    /** The inputs of the service. */
    items: Items
  },
  /** Runs another scene, if it is enabled and its conditions hold. */
  RunScene: { sceneId: SceneId },
  /** Sends an HTTP request. */
  Webhook: {
    url: Schema.String,
    method: WebhookMethod,
    desc: Schema.String,
    /** Seconds; null: the default. */
    connectTimeout: Schema.NullOr(Schema.Finite),
    /** Seconds; null: the default. */
    requestTimeout: Schema.NullOr(Schema.Finite),
    /** The template of the body (`BodyTemplate`). Absent: the body that the cloud makes. */
    body: Schema.optionalKey(Schema.String)
  },
  /** Lets time pass before the next action. */
  Delay: {
    /** 1 to {@link maxDelay}. */
    seconds: Schema.Finite
  },
  /** Whatever the application that registered the URI makes of the parameters. */
  Custom: customFields
})
export type Action = typeof Action.Type

export type DeviceAction = Action & { readonly _tag: "SetProperties" | "CallService" }
export type RunSceneAction = Action & { readonly _tag: "RunScene" }
export type WebhookAction = Action & { readonly _tag: "Webhook" }
export type CustomAction = Action & { readonly _tag: "Custom" }

const Timeout = Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })))

/** The parameters of each kind of action that is built in. */
export const actionParams = {
  "action/device/property": {
    device_id: Name,
    property_id: Schema.optional(Name).annotate({ description: "One of the items; it changes nothing" }),
    items: Items.annotate({ description: "Property to value" })
  },
  "action/device/service": {
    device_id: Name,
    service_id: Name,
    items: Schema.optional(Items).annotate({ description: "Input to value" })
  },
  "action/rule": { scene_id: Name },
  "action/webhook": {
    URL: Text(2048),
    method: WebhookMethod,
    desc: Schema.optional(Text(1024)),
    connect_timeout: Timeout.annotate({ description: "Seconds; 0, the default, stands for 5" }),
    request_timeout: Timeout.annotate({ description: "Seconds; 0, the default, stands for 10" }),
    body: Schema.optional(Text(maxTemplate)).annotate({
      description: "JSON in which `{{variable}}` stands for a value; default: the body that docs/api/scenes.md shows"
    })
  },
  "action/delay": {
    seconds: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxDelay })).annotate({
      description: "At least 1; the delays of a scene are at most 43,200 together"
    })
  }
} as const

/** The URI of an action that is built in. */
export const ActionUri = Schema.Literals([
  "action/device/property",
  "action/device/service",
  "action/rule",
  "action/webhook",
  "action/delay"
])
export type ActionUri = typeof ActionUri.Type

/** An action as the API returns it: one variant for each URI that is built in, and one for custom actions. */
export const ActionRecord = Schema.Union([
  partRecord("action/device/property", actionParams["action/device/property"]),
  partRecord("action/device/service", actionParams["action/device/service"]),
  partRecord("action/rule", actionParams["action/rule"]),
  partRecord("action/webhook", actionParams["action/webhook"]),
  partRecord("action/delay", actionParams["action/delay"]),
  customRecord("action", ActionUri.literals)
]).annotate({ identifier: "SceneAction" })
export type ActionRecord = typeof ActionRecord.Type

const itemsOf = (params: ParamsReader) => (params.value("items") ?? {}) as typeof Items.Type

/** Reads an action that is built in. */
export const readAction = (uri: ActionUri, params: ParamsReader): Action => {
  switch (uri) {
    case "action/device/property": {
      const items = itemsOf(params)
      const propertyId = params.text("property_id", "")
      if (Object.keys(items).length === 0) params.refuse("items", "Expected at least one property with its value")
      else if (propertyId !== "" && !Object.hasOwn(items, propertyId)) {
        params.refuse("items", `Expected a value for ${propertyId}, the property_id`)
      }
      return { _tag: "SetProperties", deviceId: DeviceId.make(params.text("device_id")), propertyId, items }
    }
    case "action/device/service":
      return {
        _tag: "CallService",
        deviceId: DeviceId.make(params.text("device_id")),
        serviceId: params.text("service_id"),
        items: itemsOf(params)
      }
    case "action/rule":
      return { _tag: "RunScene", sceneId: SceneId.make(params.text("scene_id")) }
    case "action/webhook": {
      const template = params.given({ body: "body" })
      const refused = template.body === undefined ? undefined : refuseTemplate(template.body)
      if (refused !== undefined) params.refuse("body", refused)
      return {
        _tag: "Webhook",
        url: params.text("URL"),
        method: params.text("method") as WebhookMethod,
        desc: params.text("desc", ""),
        connectTimeout: params.number("connect_timeout") || null,
        requestTimeout: params.number("request_timeout") || null,
        ...template
      }
    }
    case "action/delay": {
      const seconds = params.number("seconds")
      if (seconds === 0) params.refuse("seconds", `Expected 1 to ${maxDelay}`)
      return { _tag: "Delay", seconds }
    }
  }
}

/** Writes an action as the API returns it. */
export const encodeAction = (action: Action): ActionRecord => {
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
      const { body, connectTimeout, desc, method, requestTimeout, url } = action
      return {
        URI: "action/webhook",
        params: {
          URL: url,
          method,
          ...desc === "" ? {} : { desc },
          ...connectTimeout === null ? {} : { connect_timeout: connectTimeout },
          ...requestTimeout === null ? {} : { request_timeout: requestTimeout },
          ...body === undefined ? {} : { body }
        }
      }
    }
    case "Delay":
      return { URI: "action/delay", params: { seconds: action.seconds } }
    case "Custom":
      return { URI: action.uri, params: action.params }
  }
}
