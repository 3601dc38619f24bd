/**
 * Port: what the nodes of one cloud tell each other.
 */
import { Context, type Effect, type Stream } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { DisconnectReason } from "../connection/DeviceSessions.ts"
import type { ProductKey } from "../product/Product.ts"
import type { SceneId } from "../scene/definition/Scene.ts"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"

export type NodeNotice =
  /** A command was stored for a device that is not connected to the node that took it. */
  | { readonly _tag: "CommandWaiting"; readonly deviceId: DeviceId }
  /** A device that is not connected to the node that says this is to be told of its upgrade. */
  | { readonly _tag: "UpgradeDue"; readonly deviceId: DeviceId; readonly taskId: number }
  /** The device may not be connected any more; `method` is the last that it is told. */
  | {
    readonly _tag: "CutOff"
    readonly deviceId: DeviceId
    readonly method?: string | undefined
    readonly reason: DisconnectReason
  }
  /** For the device, from a node that it is not connected to. */
  | { readonly _tag: "Deliver"; readonly deviceId: DeviceId; readonly method: string; readonly params: Json }
  /** The device has connected while another connection of it counted. */
  | { readonly _tag: "Replaced"; readonly deviceId: DeviceId }
  | { readonly _tag: "ModelChanged"; readonly productKey: ProductKey }
  /** The scene is another one now, or gone; devices of these products fire it, or did. */
  | { readonly _tag: "SceneChanged"; readonly sceneId: SceneId; readonly productKeys: ReadonlyArray<ProductKey> }
  /** Nobody said this: notices may have been lost before it. */
  | { readonly _tag: "Missed" }

/**
 * Laws: what a node tells is heard by the others, in its order; or they hear
 * `Missed` after it. The node itself may hear it as well. A notice has at most
 * 7 KB as JSON.
 */
export class NodeBus extends Context.Service<NodeBus, {
  readonly tell: (notices: ReadonlyArray<NodeNotice>) => Effect.Effect<void, StoreError>
  /** What nodes tell from now on. It never ends. */
  readonly heard: Stream.Stream<NodeNotice>
}>()("@device-cloud/core/cluster/NodeBus") {}
