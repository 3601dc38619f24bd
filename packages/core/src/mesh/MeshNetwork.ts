/**
 * Bluetooth mesh networks and their nodes (docs/protocol/mesh.md).
 */
import { Schema } from "effect"
import type { DeviceId, DeviceName } from "../device/Device.ts"
import { DomainError, shortened } from "../kernel/DomainError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { Text } from "../kernel/Text.ts"

const Key = Schema.String.check(
  Schema.isPattern(/^(?:[0-9A-Fa-f]{32})?$/u, { expected: "32 hex digits, or empty text" })
)

/** What the creator of a network decides. The cloud makes keys that are absent or empty. */
export const MeshNetworkDraft = Schema.Struct({
  networkKey: Schema.optional(Key),
  appKey: Schema.optional(Key)
})
export interface MeshNetworkDraft extends Schema.Schema.Type<typeof MeshNetworkDraft> {}

export interface MeshNetwork {
  /** Positive; grows with each network. */
  readonly networkId: number
  readonly projectId: ProjectId
  /** 32 lower-case hex digits; unique in its project. */
  readonly networkKey: string
  /** 32 lower-case hex digits. */
  readonly appKey: string
  /** The address of the next sub-device, 0x0100 to 0x7FFF. If no address is free, the next search begins here. */
  readonly unicastCursor: number
  /** The address of the next gateway, 0x0001 to 0x00FF. If no address is free, the next search begins here. */
  readonly provisionerCursor: number
  /** Unix milliseconds. */
  readonly createdAt: number
  /** When the latest node was added, Unix milliseconds. */
  readonly updatedAt: number
}

export type NewMeshNetwork = Omit<MeshNetwork, "networkId">

/** 1: sub-device, 2: gateway. */
export const MeshNodeType = Schema.Literals([1, 2])
export type MeshNodeType = typeof MeshNodeType.Type

/** A device that becomes a node, with its signature. */
export const MeshNodeDraft = Schema.Struct({
  productKey: Text(128).pipe(Schema.brand("ProductKey")),
  deviceName: Text(128).pipe(Schema.brand("DeviceName")),
  /** Of the text `deviceName…productKey…` under the device's secret; hex of either case. */
  sign: Schema.String,
  signMethod: Schema.Literals(["hmacsha1", "hmacmd5", "aescmac"]),
  /** In the range of the type. Default, also of 0: the next free address. */
  meshAddr: Schema.optional(Schema.Int),
  nodeType: MeshNodeType
})
export interface MeshNodeDraft extends Schema.Schema.Type<typeof MeshNodeDraft> {}

export interface MeshNode {
  readonly deviceId: DeviceId
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  /** Unique in its network. */
  readonly meshAddr: number
  readonly nodeType: MeshNodeType
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** The addresses of nodes of each type, both ends included. */
const addresses: Readonly<Record<MeshNodeType, { readonly first: number; readonly last: number }>> = {
  1: { first: 0x0100, last: 0x7fff },
  2: { first: 0x0001, last: 0x00ff }
}

/** Where the cursors of a new network stand. */
export const firstCursors = { unicastCursor: addresses[1].first, provisionerCursor: addresses[2].first }

/** Returns undefined if nodes of the type may have the address, otherwise what was expected. */
export const addressMisfit = (nodeType: MeshNodeType, meshAddr: number): string | undefined => {
  const { first, last } = addresses[nodeType]
  return meshAddr >= first && meshAddr <= last
    ? undefined
    : `Expected ${first} to ${last}: the addresses of nodes of type ${nodeType}`
}

/** Returns which cursor nodes of the type move. */
export const cursorOf = (nodeType: MeshNodeType): "unicastCursor" | "provisionerCursor" =>
  nodeType === 1 ? "unicastCursor" : "provisionerCursor"

/** The address of a new node, and the next cursor of its type. */
export interface Placement {
  readonly meshAddr: number
  readonly cursor: number
}

/**
 * Places a node at `meshAddr`, or at the first free address from the cursor on.
 * The cursor moves to the next free address and wraps at the end of the range, so
 * that the address of a removed node is reused as late as possible. `used` holds
 * the addresses of the network, at least those of this type. Returns `taken` if
 * `meshAddr` is in use, `full` if no address is free.
 */
export const place = (
  nodeType: MeshNodeType,
  cursor: number,
  used: ReadonlySet<number>,
  meshAddr?: number
): Placement | "taken" | "full" => {
  const { first, last } = addresses[nodeType]
  const count = last - first + 1
  const free = (from: number): number | undefined => {
    for (let i = 0; i < count; i++) {
      const address = first + (from - first + i) % count
      if (address !== meshAddr && !used.has(address)) return address
    }
    return undefined
  }
  if (meshAddr !== undefined) {
    return used.has(meshAddr) ? "taken" : { meshAddr, cursor: free(meshAddr) ?? meshAddr }
  }
  const found = free(cursor)
  return found === undefined ? "full" : place(nodeType, cursor, used, found)
}

/** Bytes that go unchanged to the gateways of a network. */
export const MeshRawData = Schema.Struct({
  rawData: Schema.String.check(
    Schema.isPattern(/^(?:[0-9A-Fa-f]{2}){1,512}$/u, { expected: "1 to 512 bytes as hex text" })
  )
})
export interface MeshRawData extends Schema.Schema.Type<typeof MeshRawData> {}

/** The method of the message that carries bytes to a gateway. */
export const meshRawMethod = "thing.mesh.raw"

/** The project has no network with this key. */
export class MeshNetworkNotFound extends DomainError<MeshNetworkNotFound>()(
  "MeshNetworkNotFound",
  {
    networkKey: Schema.String
  },
  ({ networkKey }) => `There is no mesh network ${shortened(networkKey)} in this project`
) {}

/** The project already has a network with this key. */
export class NetworkKeyTaken extends DomainError<NetworkKeyTaken>()(
  "NetworkKeyTaken",
  {
    networkKey: Schema.String
  },
  ({ networkKey }) => `There is a mesh network ${shortened(networkKey)} in this project`
) {}

/** The device is no node of the network. */
export class MeshNodeNotFound extends DomainError<MeshNodeNotFound>()(
  "MeshNodeNotFound",
  {
    networkKey: Schema.String,
    deviceId: Schema.String
  },
  ({ deviceId, networkKey }) => `Device ${deviceId} is no node of network ${shortened(networkKey)}`
) {}

/** The device already is a node of the network. */
export class MeshNodeExists extends DomainError<MeshNodeExists>()(
  "MeshNodeExists",
  {
    networkKey: Schema.String,
    deviceName: Schema.String,
    meshAddr: Schema.Int,
    nodeType: MeshNodeType
  },
  ({ deviceName, meshAddr, networkKey }) =>
    `Device ${deviceName} is a node of network ${shortened(networkKey)} already, with address ${meshAddr}`
) {}

/** Another node of the network has this address. */
export class MeshAddressTaken extends DomainError<MeshAddressTaken>()(
  "MeshAddressTaken",
  {
    meshAddr: Schema.Int
  },
  ({ meshAddr }) => `Another node of the network has address ${meshAddr}`
) {}

/** All addresses of nodes of this type are used. */
export class MeshNetworkFull extends DomainError<MeshNetworkFull>()(
  "MeshNetworkFull",
  {
    networkKey: Schema.String,
    nodeType: MeshNodeType
  },
  ({ networkKey, nodeType }) =>
    `No address for a node of type ${nodeType} is left in network ${shortened(networkKey)}; remove nodes first`
) {}

/** None of the network's gateways is connected. */
export class NoGatewayOnline extends DomainError<NoGatewayOnline>()(
  "NoGatewayOnline",
  {
    networkKey: Schema.String
  },
  ({ networkKey }) => `No gateway of mesh network ${shortened(networkKey)} is connected`
) {}
