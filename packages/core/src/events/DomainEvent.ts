/**
 * What happened in the cloud, published after it was stored.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { ProjectId } from "../project/Project.ts"
import type { ChangedDevice } from "./DeviceChange.ts"
import type { Json } from "../kernel/Json.ts"

interface DeviceEvent {
  readonly device: Omit<DeviceIdentity, "validateType">
  /** Unix milliseconds. */
  readonly at: number
}

export type DomainEvent =
  | DeviceEvent & {
    readonly _tag: "DeviceStatusChanged"
    readonly status: "online" | "offline"
    /** Grows by one with each change of this device's status. */
    readonly version: number
  }
  | DeviceEvent & {
    readonly _tag: "PropertiesReported"
    /** What was kept of the report, also values that are older than the stored ones. */
    readonly properties: Readonly<Record<string, { readonly value: Json; readonly time: number }>>
  }
  | DeviceEvent & {
    readonly _tag: "EventReported"
    readonly eventId: string
    /** When it happened, Unix milliseconds. */
    readonly time: number
    readonly value: Json
  }
  | DeviceEvent & {
    readonly _tag: "CommandReplied"
    readonly messageId: number
    /** 200: the device has done it. */
    readonly code: number
    readonly message: string
    readonly data: Json
  }
  | DeviceEvent & {
    readonly _tag: "UpgradeProgressed"
    readonly taskId: number
    readonly module: string
    /** The target. */
    readonly version: string
    readonly status: "pending" | "upgrading" | "succeeded" | "failed" | "cancelled"
    /** Percent, or -1: failed. */
    readonly step: number
    /** What the device or the cloud said last. */
    readonly reason: string
  }
  | DeviceEvent & {
    readonly _tag: "DeviceLifecycle"
    readonly action: "create" | "delete" | "enable" | "disable" | "bind" | "unbind"
  }
  | DeviceEvent & {
    /** Sub-devices were attached to the gateway `device`, or detached from it. */
    readonly _tag: "TopologyChanged"
    readonly action: "create" | "delete"
    readonly subDevices: ReadonlyArray<Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName">>
  }
  | {
    readonly _tag: "SceneExecuted"
    readonly projectId: ProjectId
    /** That has fired the scene. */
    readonly device: ChangedDevice | null
    /** Unix milliseconds. */
    readonly at: number
    readonly sceneId: string
    readonly sceneName: string
    readonly executionId: string
    readonly status:
      | "pending"
      | "running"
      | "succeeded"
      | "failed"
      | "loop"
      | "not_met"
      | "skipped"
      | "paused"
    /** A sentence about the status. */
    readonly reason: string
  }

/** The project in which it has happened. */
export const projectOf = (event: DomainEvent): ProjectId =>
  event._tag === "SceneExecuted" ? event.projectId : event.device.projectId
