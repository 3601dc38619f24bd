/**
 * Port: where mesh networks and their nodes are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ProjectId } from "../project/Project.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { MeshNetwork, MeshNode, MeshNodeType, NewMeshNetwork } from "./MeshNetwork.ts"

export interface NewMeshNode {
  readonly deviceId: DeviceId
  readonly nodeType: MeshNodeType
  /** In the range of its type; undefined: the next. */
  readonly meshAddr: number | undefined
  /** Unix milliseconds. */
  readonly at: number
}

export type NodeAdded =
  | { readonly _tag: "Added"; readonly node: MeshNode }
  /** The device is this node already. */
  | { readonly _tag: "Exists"; readonly node: MeshNode }
  /** As `place` says. */
  | { readonly _tag: "Taken" | "Full" }
  | { readonly _tag: "NoNetwork" | "NoDevice" }

/**
 * Laws: each call is one transaction. A project has one network of a key. A
 * device is at most one node of a network, and no two nodes of it have the same
 * address, however many are added at the same time. With a network go its
 * nodes, with a device go the nodes that it is, with a project its networks.
 */
export class MeshStore extends Context.Service<MeshStore, {
  /** False: the project has a network of this key. */
  readonly insert: (network: NewMeshNetwork) => Effect.Effect<boolean, StoreError>
  readonly get: (
    projectId: ProjectId,
    networkKey: string
  ) => Effect.Effect<Option.Option<MeshNetwork>, StoreError>
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<MeshNetwork>, StoreError>
  /** False: there is none. */
  readonly remove: (projectId: ProjectId, networkKey: string) => Effect.Effect<boolean, StoreError>
  /** Where `place` puts it, which also says where the cursor of its type stands afterwards. */
  readonly addNode: (networkId: number, node: NewMeshNode) => Effect.Effect<NodeAdded, StoreError>
  /** False: there is none. */
  readonly removeNode: (networkId: number, deviceId: DeviceId) => Effect.Effect<boolean, StoreError>
  /** Its nodes, newest first. */
  readonly nodes: (networkId: number, page: PageRequest) => Effect.Effect<Page<MeshNode>, StoreError>
  /** The devices that are gateways of the network, at most 255. */
  readonly gateways: (networkId: number) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
}>()("@device-cloud/core/mesh/MeshStore") {}
