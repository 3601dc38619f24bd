/**
 * Whether the rules of a scene fit the project: its products, devices, thing
 * models and other scenes.
 */
import { Effect, Option, Result } from "effect"
import type { DeviceDetail, DeviceId, DeviceName, DeviceReference } from "../../device/Device.ts"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import { type InputIssue, InvalidInput } from "../../kernel/InvalidInput.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProductStore } from "../../product/ProductStore.ts"
import type { ProjectId } from "../../project/Project.ts"
import { isFiniteJson } from "../../kernel/Json.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type DataType, Misfit } from "../../thing-model/DataType.ts"
import type { ModelValidator } from "../../thing-model/ModelValidator.ts"
import type { ModelCache } from "../../thing-model/ModelCache.ts"
import { type Comparison, misfitOfType } from "./Comparison.ts"
import { type Action, type Condition, type SceneId, type SceneRules, type Trigger, wildcard } from "./Scene.ts"
import { nextTime, parseCron } from "./SceneDocument.ts"
import type { SceneStore } from "./SceneStore.ts"
import type { WebhookClient } from "../execution/WebhookClient.ts"

export interface Checked {
  readonly projectId: ProjectId
  /** The scene itself, whose own actions may name it. */
  readonly sceneId: SceneId
  readonly rules: SceneRules
  readonly timeZone: string
  /** Unix milliseconds. */
  readonly now: number
}

export interface CheckAgainst {
  readonly products: ProductStore["Service"]
  readonly devices: DeviceStore["Service"]
  readonly validators: ModelCache["Service"]
  readonly scenes: SceneStore["Service"]
  readonly webhooks: WebhookClient["Service"]
}

/** Objects and arrays inside each other in the values of an action. */
const maxNesting = 16
/** The values of an action as JSON, in UTF-16 code units. */
const maxLength = 64 * 1024

type Refuse = (name: string, message: string) => void

/** Of a property of the model, or of an output of one of its events. */
const typeOf = (validator: ModelValidator, part: Trigger | Condition): DataType | string => {
  if (part._tag === "Property") {
    const found = validator.model.properties.find(({ id }) => id === part.propertyId)
    return found?.dataType ?? `Expected a property of the thing model, which has no ${part.propertyId}`
  }
  if (part._tag !== "Event") return ""
  const event = validator.model.events.find(({ id }) => id === part.eventId)
  const output = event?.outputData.find(({ id }) => id === part.propertyId)
  return output?.dataType ?? `Expected an output of the event ${part.eventId}, which has no ${part.propertyId}`
}

const checkComparison = (comparison: Comparison | null, type: DataType | string, refuse: Refuse) => {
  if (typeof type === "string") return refuse("property_id", type)
  const misfit = comparison === null ? undefined : misfitOfType(comparison, type)
  if (misfit !== undefined) refuse(misfit.param, misfit.message)
}

/** Fails with all that does not fit. */
export const checkRules = Effect.fnUntraced(function*(
  { devices, products, scenes, validators, webhooks }: CheckAgainst,
  { now, projectId, rules, sceneId, timeZone }: Checked
): Effect.fn.Return<void, InvalidInput | StoreError> {
  const issues: Array<InputIssue> = []
  const refuser = (list: keyof SceneRules, position: number): Refuse => (name, message) =>
    issues.push({ path: [list, position, "params", ...name.split("/")], message })

  const productExists = new Map<ProductKey, boolean>()
  const hasProduct = Effect.fnUntraced(function*(productKey: ProductKey) {
    const known = productExists.get(productKey)
    if (known !== undefined) return known
    const exists = Option.isSome(yield* products.get(projectId, productKey))
    productExists.set(productKey, exists)
    return exists
  })

  const checkDevices = Effect.fnUntraced(function*(
    { deviceName, productKey }: { readonly productKey: ProductKey; readonly deviceName: DeviceName | typeof wildcard },
    refuse: Refuse
  ) {
    if (!(yield* hasProduct(productKey))) {
      refuse("product_key", `Expected a product of the project; there is no ${productKey}`)
      return false
    }
    if (deviceName === wildcard) return true
    const found = yield* devices.get(projectId, { productKey, deviceName: deviceName as DeviceName })
    if (Option.isSome(found)) return true
    refuse("device_name", `Expected * or a device of product ${productKey}; there is no ${deviceName}`)
    return false
  })

  /** A trigger or condition of devices against their model. */
  const checkPart = Effect.fnUntraced(function*(part: Trigger | Condition, refuse: Refuse) {
    if (part._tag === "Cron" || part._tag === "TimeRange" || !(yield* checkDevices(part, refuse))) return
    if (part._tag === "Status") return
    const validator = Option.getOrUndefined(yield* validators.ofProduct(part.productKey))
    if (validator === undefined) return
    if (part._tag === "Property") {
      if (part.propertyId !== wildcard) checkComparison(part.comparison, typeOf(validator, part), refuse)
      return
    }
    if (part.eventId === wildcard) return
    if (!validator.model.events.some(({ id }) => id === part.eventId)) {
      return refuse("event_id", `Expected an event of the thing model, which has no ${part.eventId}`)
    }
    if (part.propertyId !== null) checkComparison(part.comparison, typeOf(validator, part), refuse)
  })

  const findDevice = Effect.fnUntraced(function*(deviceId: DeviceId, refuse: Refuse) {
    const reference: DeviceReference = { deviceId }
    const found = Option.getOrUndefined(yield* devices.get(projectId, reference))
    if (found === undefined) refuse("device_id", `Expected a device of the project; there is no ${deviceId}`)
    return found
  })

  const checkValues = (
    action: Action & { readonly _tag: "SetProperties" | "CallService" },
    validator: ModelValidator | undefined,
    refuse: Refuse
  ) => {
    if (!isFiniteJson(action.items, maxNesting) || JSON.stringify(action.items).length > maxLength) {
      return refuse("items", `Expected JSON of at most ${maxNesting} levels and ${maxLength} characters`)
    }
    if (validator === undefined) return
    if (action._tag === "SetProperties") {
      for (const [id, value] of Object.entries(action.items)) {
        const checked = validator.desired(id, value)
        if (checked instanceof Misfit) refuse(`items/${id}`, checked.message)
      }
      return
    }
    const service = validator.service(action.serviceId)
    if (service === undefined) {
      return refuse("service_id", `Expected a service of the thing model, which has no ${action.serviceId}`)
    }
    if (service.element.callType === "sync") {
      return refuse("service_id", `Expected an asynchronous service; ${action.serviceId} is not`)
    }
    const checked = service.input(action.items)
    if (checked instanceof Misfit) refuse("items", checked.message)
  }

  const checkAction = Effect.fnUntraced(function*(action: Action, refuse: Refuse) {
    switch (action._tag) {
      case "SetProperties":
      case "CallService": {
        const found: DeviceDetail | undefined = yield* findDevice(action.deviceId, refuse)
        if (found === undefined) return
        const validator = yield* validators.ofProduct(found.device.productKey)
        return checkValues(action, Option.getOrUndefined(validator), refuse)
      }
      case "RunScene": {
        if (action.sceneId === sceneId || Option.isSome(yield* scenes.get(projectId, action.sceneId))) return
        return refuse("scene_id", `Expected a scene of the project; there is no ${action.sceneId}`)
      }
      case "Webhook": {
        const refused = webhooks.refuse(action.url)
        if (refused !== undefined) refuse("URL", refused)
      }
    }
  })

  for (const [position, trigger] of rules.triggers.entries()) {
    const refuse = refuser("triggers", position)
    if (trigger._tag === "Cron") {
      const parsed = parseCron(trigger.cron, timeZone)
      if (Result.isFailure(parsed)) refuse("cron", parsed.failure)
      else if (nextTime(trigger.cron, timeZone, now) === null) refuse("cron", "Expected a time that comes")
    }
    yield* checkPart(trigger, refuse)
  }
  for (const [position, condition] of rules.conditions.entries()) {
    yield* checkPart(condition, refuser("conditions", position))
  }
  for (const [position, action] of rules.actions.entries()) yield* checkAction(action, refuser("actions", position))

  const [first, ...rest] = issues
  if (first !== undefined) return yield* new InvalidInput({ issues: [first, ...rest] })
})
