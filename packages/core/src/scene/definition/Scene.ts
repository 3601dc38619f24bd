/**
 * Scenes: rules that act when something happens (specification, Scene;
 * decisions, section 11). Any trigger fires a scene, all its conditions must
 * hold, its actions run in order.
 */
import { Context, Schema } from "effect"
import type { DeviceId, DeviceName } from "../../device/Device.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { Json } from "../../kernel/Json.ts"
import type { Comparison } from "./Comparison.ts"

export const SceneId = Schema.String.pipe(Schema.brand("SceneId"))
export type SceneId = typeof SceneId.Type

/** Stands for any device of the product, any property, event or status. */
export const wildcard = "*"

export const SceneStatus = Schema.Literals(["enable", "disable"])
export type SceneStatus = typeof SceneStatus.Type

interface OfDevices {
  readonly productKey: ProductKey
  /** Or {@link wildcard}; in a condition that is the device that fired. */
  readonly deviceName: DeviceName | typeof wildcard
}

/** `online`, `offline`, or either. */
export type WatchedStatus = "online" | "offline" | typeof wildcard

export type Trigger =
  /** A report changes the stored value, or is the first. */
  | OfDevices & {
    readonly _tag: "Property"
    readonly propertyId: string
    readonly comparison: Comparison | null
  }
  | OfDevices & {
    readonly _tag: "Event"
    readonly eventId: string
    /** The output that is compared. */
    readonly propertyId: string | null
    readonly comparison: Comparison | null
  }
  | OfDevices & { readonly _tag: "Status"; readonly status: WatchedStatus }
  | { readonly _tag: "Cron"; readonly cronId: string; readonly cron: string }

export type DeviceTrigger = Exclude<Trigger, { readonly _tag: "Cron" }>

export type Condition =
  | OfDevices & {
    readonly _tag: "Property"
    readonly propertyId: string
    readonly comparison: Comparison | null
  }
  | OfDevices & {
    readonly _tag: "Status"
    readonly status: WatchedStatus
    /** For how many minutes at least. */
    readonly minutes: number
  }
  /** Unix seconds, both inclusive. */
  | { readonly _tag: "TimeRange"; readonly start: number; readonly end: number }

type Items = Readonly<Record<string, Json>>

export const WebhookMethod = Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])
export type WebhookMethod = typeof WebhookMethod.Type

export type Action =
  | { readonly _tag: "SetProperties"; readonly deviceId: DeviceId; readonly propertyId: string; readonly items: Items }
  | { readonly _tag: "CallService"; readonly deviceId: DeviceId; readonly serviceId: string; readonly items: Items }
  | { readonly _tag: "RunScene"; readonly sceneId: SceneId }
  | {
    readonly _tag: "Webhook"
    readonly url: string
    readonly method: WebhookMethod
    readonly desc: string
    /** Seconds; null: the default. */
    readonly connectTimeout: number | null
    readonly requestTimeout: number | null
  }

/** What a scene does, and when. */
export interface SceneRules {
  readonly triggers: ReadonlyArray<Trigger>
  readonly conditions: ReadonlyArray<Condition>
  readonly actions: ReadonlyArray<Action>
}

export const maxTriggers = 10
export const maxConditions = 20
export const maxActions = 50

export interface Scene extends SceneRules {
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  /** Unique in the project. */
  readonly name: string
  readonly desc: string
  readonly status: SceneStatus
  /** It does not fire before this, Unix milliseconds; null: it is not paused. */
  readonly pausedUntil: number | null
  /** 1 for the first; grows with each change. */
  readonly revision: number
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Unix milliseconds. */
  readonly updatedAt: number
}

/** When a cron trigger fires next, Unix milliseconds; null: never. */
export interface SceneTimer {
  readonly cronId: string
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  readonly cron: string
  readonly dueAt: number | null
}

/** All given conditions must hold. */
export interface SceneFilter {
  /** What its name contains. */
  readonly name?: string | undefined
  readonly status?: SceneStatus | undefined
}

/** The products whose devices fire the scene. */
export const watchedProducts = ({ triggers }: Pick<SceneRules, "triggers">): ReadonlyArray<ProductKey> => [
  ...new Set(triggers.flatMap((trigger) => trigger._tag === "Cron" ? [] : [trigger.productKey]))
]

/** The time zone of cron triggers, by its IANA name. */
export const SceneTimeZone = Context.Reference<string>("@device-cloud/core/scene/definition/SceneTimeZone", {
  defaultValue: () => "UTC"
})

export class SceneNotFound extends Schema.TaggedError<SceneNotFound>()("SceneNotFound", {
  sceneId: Schema.String
}) {}

/** The project has another scene of this name. */
export class SceneNameTaken extends Schema.TaggedError<SceneNameTaken>()("SceneNameTaken", {
  name: Schema.String
}) {}
