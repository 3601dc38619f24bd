/**
 * Checks whether the rules of a scene fit the project: its products, devices,
 * thing models and other scenes.
 */
import { Effect, Option, Result } from "effect"
import type { DeviceDetail, DeviceId, DeviceName, DeviceReference } from "../../device/Device.ts"
import type { DeviceStore } from "../../device/DeviceStore.ts"
import { type InputIssue, InvalidInput } from "../../kernel/InvalidInput.ts"
import { expectedTimeZone, isTimeZone } from "../../kernel/TimeZone.ts"
import { equalJson, type Json } from "../../kernel/Json.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProductStore } from "../../product/ProductStore.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type DataType, Misfit } from "../../thing-model/DataType.ts"
import type { ModelValidator } from "../../thing-model/ModelValidator.ts"
import type { ModelCache } from "../../thing-model/ModelCache.ts"
import type { Action, DeviceAction } from "./Action.ts"
import { type Comparison, misfitOfType } from "./Comparison.ts"
import type { Condition } from "./Condition.ts"
import { nextTime, parseCron } from "./CronExpression.ts"
import { type CustomPart, type CustomParts, refuseJson } from "./CustomPart.ts"
import type { SceneRules } from "./Scene.ts"
import type { SceneId } from "./SceneId.ts"
import { wildcard } from "./ScenePart.ts"
import type { SceneStore } from "./SceneStore.ts"
import type { Trigger } from "./Trigger.ts"

/** The rules that are checked, and of which scene they are. */
export interface Checked {
  readonly projectId: ProjectId
  /** The scene itself. Its own actions may name it. */
  readonly sceneId: SceneId
  readonly rules: SceneRules
  /** The rules that the scene has until now; undefined: it is new. */
  readonly before: SceneRules | undefined
  /** Of cron triggers that have none of their own, by its IANA name. */
  readonly timeZone: string
  /** Unix milliseconds. */
  readonly now: number
}

/** What the rules are checked against. */
export interface CheckAgainst {
  readonly products: ProductStore["Service"]
  readonly devices: DeviceStore["Service"]
  readonly validators: ModelCache["Service"]
  readonly scenes: SceneStore["Service"]
  readonly custom: CustomParts
  /** Returns why no webhook may go to the URL. */
  readonly refuseUrl: (url: string) => string | undefined
}

type Refuse = (name: string, message: string, member?: InputIssue["path"]) => void

/** Returns the type of the property or output that the part is about, or why there is none. */
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

/** A part as JSON, without the id that a stored cron trigger has. */
const asJson = (part: Trigger | Condition | Action): Json => part._tag === "Cron" ? { ...part, cronId: "" } : part

/** Whether the scene has had the part that the issue is about. */
const isKept = (before: SceneRules | undefined, rules: SceneRules, { path: [list, position] }: InputIssue): boolean => {
  const name = list as keyof SceneRules
  const part = asJson(rules[name][position as number]!)
  return before?.[name].some((kept) => equalJson(asJson(kept), part)) === true
}

/**
 * Fails with everything that does not fit. Parts that the scene has had are kept,
 * also if what they name is gone by now: returns a sentence about each of them
 * that does not fit any more.
 */
export const checkRules = Effect.fnUntraced(function*(
  { custom, devices, products, refuseUrl, scenes, validators }: CheckAgainst,
  { before, now, projectId, rules, sceneId, timeZone }: Checked
): Effect.fn.Return<ReadonlyArray<string>, InvalidInput | StoreError> {
  const issues: Array<InputIssue> = []
  const refuser = (list: keyof SceneRules, position: number): Refuse => (name, message, member = []) =>
    issues.push({ path: [list, position, "params", name, ...member], message })

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

  /** Checks a trigger or condition of devices against their model. */
  const checkPart = Effect.fnUntraced(function*(part: Trigger | Condition, refuse: Refuse) {
    if (part._tag === "Cron" || part._tag === "TimeRange" || part._tag === "TimeWindow" || part._tag === "Custom") {
      return
    }
    if (!(yield* checkDevices(part, refuse))) return
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
    action: DeviceAction,
    validator: ModelValidator | undefined,
    refuse: Refuse
  ) => {
    const refused = refuseJson(action.items)
    if (refused !== undefined) return refuse("items", refused)
    if (validator === undefined) return
    if (action._tag === "SetProperties") {
      for (const [id, value] of Object.entries(action.items)) {
        const checked = validator.desired(id, value)
        if (checked instanceof Misfit) refuse("items", checked.issue.message, [id, ...checked.issue.path])
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
    if (checked instanceof Misfit) refuse("items", checked.issue.message, checked.issue.path)
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
        const refused = refuseUrl(action.url)
        if (refused !== undefined) refuse("URL", refused)
      }
    }
  })

  const checkTimer = ({ cron, timeZone: own = timeZone }: Trigger & { readonly _tag: "Cron" }, refuse: Refuse) => {
    if (!isTimeZone(own)) return refuse("time_zone", expectedTimeZone)
    const parsed = parseCron(cron, own)
    if (Result.isFailure(parsed)) return refuse("cron", parsed.failure)
    if (nextTime(cron, own, now) === null) refuse("cron", "Expected a time that comes")
  }

  const checkCustom = Effect.fnUntraced(function*(
    part: Condition | Action,
    kinds: ReadonlyMap<string, CustomPart>,
    list: keyof SceneRules,
    position: number
  ) {
    if (part._tag !== "Custom") return
    for (const { message, path } of yield* kinds.get(part.uri)!.check(part.params, { projectId, sceneId })) {
      issues.push({ path: [list, position, "params", ...path], message })
    }
  })

  for (const [position, trigger] of rules.triggers.entries()) {
    const refuse = refuser("triggers", position)
    if (trigger._tag === "Cron") checkTimer(trigger, refuse)
    yield* checkPart(trigger, refuse)
  }
  for (const [position, condition] of rules.conditions.entries()) {
    yield* checkPart(condition, refuser("conditions", position))
    yield* checkCustom(condition, custom.conditions, "conditions", position)
  }
  for (const [position, action] of rules.actions.entries()) {
    yield* checkAction(action, refuser("actions", position))
    yield* checkCustom(action, custom.actions, "actions", position)
  }

  const [first, ...rest] = issues.filter((issue) => !isKept(before, rules, issue))
  if (first !== undefined) return yield* new InvalidInput({ issues: [first, ...rest] })
  return issues.map(({ message, path }) => `${path.join(".")}: ${message}`)
})
