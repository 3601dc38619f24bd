/**
 * Domain events: what has happened in the cloud. An event is published after the
 * change that it tells of is stored (docs/api/events.md).
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { Json } from "../kernel/Json.ts"
import type { ProjectId } from "../project/Project.ts"
import type { ChangedDevice } from "./DeviceChange.ts"

interface DeviceEvent {
  readonly device: Omit<DeviceIdentity, "validateType">
  /** Unix milliseconds. */
  readonly at: number
}

/** Through what a device is or was online. */
export interface DeviceLink {
  /** The device's address, or that of its gateway; empty: not known. */
  readonly address: string
  /** For example `mqtt`, `websocket`, `http` or `mqtt-bridge`. */
  readonly transport: string
  /** The node of the cloud. */
  readonly nodeId: string
  /** The gateway that carries the connection; absent: the device has a connection of its own. */
  readonly gateway?: Pick<DeviceIdentity, "productKey" | "deviceName">
}

export type DomainEvent =
  | DeviceEvent & {
    readonly _tag: "DeviceStatusChanged"
    readonly status: "online" | "offline"
    /** Grows by one with each change of this device's status. */
    readonly version: number
    /** Absent: the node that stores the change did not hold the connection, or an earlier version has stored it. */
    readonly link?: DeviceLink
    /** Why the device went offline, in a sentence for operators. */
    readonly reason?: string
  }
  | DeviceEvent & {
    /** Another connection has become that of a device that stays online. */
    readonly _tag: "ConnectionReplaced"
    /** The later connection. */
    readonly link: DeviceLink
  }
  | DeviceEvent & {
    readonly _tag: "PropertiesReported"
    /** The accepted values of the report, including those that are older than the stored ones. */
    readonly properties: Readonly<Record<string, { readonly value: Json; readonly time: number }>>
    /**
     * Accepted values of the same report that come before another value of the same
     * property, in the order of the report. They are part of the history.
     */
    readonly earlier?: ReadonlyArray<{ readonly propertyId: string; readonly time: number; readonly value: Json }>
  }
  | DeviceEvent & {
    readonly _tag: "EventReported"
    readonly eventId: string
    /** When the event happened, Unix milliseconds. */
    readonly time: number
    readonly value: Json
  }
  | DeviceEvent & {
    readonly _tag: "CommandReplied"
    readonly messageId: number
    /** 200: the device has carried out the command. */
    readonly code: number
    readonly message: string
    readonly data: Json
  }
  | DeviceEvent & {
    readonly _tag: "UpgradeProgressed"
    readonly taskId: number
    readonly module: string
    /** The target version. */
    readonly version: string
    readonly status: "pending" | "upgrading" | "succeeded" | "failed" | "cancelled"
    /** Progress in percent; -1: failed. */
    readonly step: number
    /** The last message of the device or the cloud about the upgrade. */
    readonly reason: string
  }
  | DeviceEvent & {
    readonly _tag: "DeviceLifecycle"
    readonly action: "create" | "delete" | "enable" | "disable" | "bind" | "unbind"
  }
  | DeviceEvent & {
    /** Sub-devices were attached to the gateway `device` (`create`) or detached from it (`delete`). */
    readonly _tag: "TopologyChanged"
    readonly action: "create" | "delete"
    readonly subDevices: ReadonlyArray<Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName">>
  }
  | {
    readonly _tag: "SceneExecuted"
    readonly projectId: ProjectId
    /** The device whose change has fired the scene; null: no device has. */
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
      | "limited"
    /** A sentence about the status. */
    readonly reason: string
  }

/** The project of the event. */
export const projectOf = (event: DomainEvent): ProjectId =>
  event._tag === "SceneExecuted" ? event.projectId : event.device.projectId
