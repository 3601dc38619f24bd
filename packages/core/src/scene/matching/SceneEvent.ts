/**
 * What can fire a scene.
 */
import type { DeviceIdentity } from "../../device/Device.ts"
import type { Json } from "../../kernel/Json.ts"
import type { SceneId } from "../definition/Scene.ts"

export type SceneDevice = Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName">

/** A value that a report has changed. */
export interface ChangedValue {
  readonly value: Json
  /** When it was measured, Unix milliseconds. */
  readonly time: number
  /** The value that was stored before; absent: it is the first. */
  readonly previous?: Json
}

interface OfDevice {
  readonly device: SceneDevice
  /** Unix milliseconds. */
  readonly at: number
}

/** Something that a device has said or done. */
export type DeviceSceneEvent =
  | OfDevice & { readonly _tag: "PropertiesChanged"; readonly properties: Readonly<Record<string, ChangedValue>> }
  | OfDevice & {
    readonly _tag: "EventReported"
    readonly eventId: string
    /** When it happened, Unix milliseconds. */
    readonly time: number
    readonly value: Json
  }
  | OfDevice & { readonly _tag: "StatusChanged"; readonly status: "online" | "offline" }

export type SceneEvent =
  | DeviceSceneEvent
  /** `at`: when it was due, Unix milliseconds. */
  | { readonly _tag: "CronTicked"; readonly cronId: string; readonly at: number }
  /** By hand: the actions run whatever triggers and conditions say. */
  | { readonly _tag: "RunByHand"; readonly at: number }
  /** By an action of another scene: the actions run if the conditions hold. */
  | {
    readonly _tag: "RunByScene"
    readonly at: number
    readonly sceneId: SceneId
    readonly executionId: string
    /** That fired the first scene. */
    readonly device: SceneDevice | null
  }

/** The device that has fired the scene, if one has. */
export const deviceOf = (event: SceneEvent): SceneDevice | null => "device" in event ? event.device : null

/** An output of an event; undefined: it carries none of this id. */
export const outputOf = (outputs: Json, id: string): Json | undefined =>
  typeof outputs === "object" && outputs !== null && !Array.isArray(outputs) && Object.hasOwn(outputs, id)
    ? (outputs as Readonly<Record<string, Json>>)[id]
    : undefined
