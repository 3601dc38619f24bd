/**
 * What can fire a scene.
 */
import type { ChangedDevice, DeviceChange } from "../../events/DeviceChange.ts"
import type { Json } from "../../kernel/Json.ts"
import type { SceneId } from "../definition/SceneId.ts"

/** A device has stayed online, or offline, for a time. `at`: when the time was over, Unix milliseconds. */
export interface StatusLasted {
  readonly _tag: "StatusLasted"
  readonly device: ChangedDevice
  readonly at: number
  readonly status: "online" | "offline"
  readonly minutes: number
  /** When the status changed to this one, Unix milliseconds. */
  readonly since: number
}

export type SceneEvent =
  | DeviceChange
  | StatusLasted
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
    readonly device: ChangedDevice | null
  }

/** The device that has fired the scene, if one has. */
export const deviceOf = (event: SceneEvent): ChangedDevice | null => "device" in event ? event.device : null

/** An output of an event; undefined: it carries none of this id. */
export const outputOf = (outputs: Json, id: string): Json | undefined =>
  typeof outputs === "object" && outputs !== null && !Array.isArray(outputs) && Object.hasOwn(outputs, id)
    ? (outputs as Readonly<Record<string, Json>>)[id]
    : undefined
