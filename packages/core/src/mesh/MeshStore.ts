/**
 * Port: stores mesh networks and their nodes.
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
  /** In the range of its type; undefined: the next free address. */
  readonly meshAddr: number | undefined
  /** Unix milliseconds. */
  readonly at: number
}

/** The outcome of an attempt to add a node. */
export type NodeAdded =
  | { readonly _tag: "Added"; readonly node: MeshNode }
  /** The device already is this node. */
  | { readonly _tag: "Exists"; readonly node: MeshNode }
  /** `place` returns `taken` or `full`. */
  | { readonly _tag: "Taken" | "Full" }
  | { readonly _tag: "NoNetwork" | "NoDevice" }

/**
 * Laws: each call is one transaction. Keys are unique in a project. A device is
 * at most one node of a network, and no two nodes of a network have the same
 * address, also when several callers add nodes at once. Nodes go with their
 * network and with their device, networks with their project.
 */
export class MeshStore extends Context.Service<MeshStore, {
  /**
   * Stores a network. Returns `taken` if the project already has a network with this
   * key, and `no-project` if there is no such project.
   */
  readonly insert: (network: NewMeshNetwork) => Effect.Effect<"inserted" | "taken" | "no-project", StoreError>
  /** Returns the network of this key, in lower case. */
  readonly get: (
    projectId: ProjectId,
    networkKey: string
  ) => Effect.Effect<Option.Option<MeshNetwork>, StoreError>
  /** Returns the networks of the project, newest first. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<MeshNetwork>, StoreError>
  /** Deletes a network with its nodes. Returns false if the network does not exist. */
  readonly remove: (projectId: ProjectId, networkKey: string) => Effect.Effect<boolean, StoreError>
  /** Adds a node where `place` puts it, and moves the cursor of its type. */
  readonly addNode: (networkId: number, node: NewMeshNode) => Effect.Effect<NodeAdded, StoreError>
  /** Removes a node. Returns false if the device is no node of the network. */
  readonly removeNode: (networkId: number, deviceId: DeviceId) => Effect.Effect<boolean, StoreError>
  /** Returns the nodes of a network, newest first. */
  readonly nodes: (networkId: number, page: PageRequest) => Effect.Effect<Page<MeshNode>, StoreError>
  /** Returns the devices that are gateways of a network, at most 255. */
  readonly gateways: (networkId: number) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
}>()("@device-cloud/core/mesh/MeshStore") {}
