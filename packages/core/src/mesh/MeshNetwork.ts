/**
 * Bluetooth mesh networks and their nodes (specification, Mesh network and node;
 * decisions, section 13).
 */
import { Schema } from "effect"
import type { DeviceId, DeviceName } from "../device/Device.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { Text } from "../kernel/Text.ts"

const Key = Schema.String.check(
  Schema.isPattern(/^(?:[0-9a-f]{32})?$/i, { expected: "32 hex digits, or empty text" })
)

/** What the maker of a network decides. Keys that are left out, or empty, are made. */
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
  /** The address of the next sub-device, 0x0100 to 0x7FFF. While none is free: where the search for one begins. */
  readonly unicastCursor: number
  /** The address of the next gateway, 0x0001 to 0x00FF; otherwise as `unicastCursor`. */
  readonly provisionerCursor: number
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The latest node that was added, Unix milliseconds. */
  readonly updatedAt: number
}

export type NewMeshNetwork = Omit<MeshNetwork, "networkId">

/** 1: sub-device, 2: gateway. */
export const MeshNodeType = Schema.Literals([1, 2])
export type MeshNodeType = typeof MeshNodeType.Type

/** The device of a node, and what it proves itself with. */
export const MeshNodeDraft = Schema.Struct({
  productKey: Text(128).pipe(Schema.brand("ProductKey")),
  deviceName: Text(128).pipe(Schema.brand("DeviceName")),
  /** Of `deviceName`, its name, `productKey` and its key, with the device's secret; hex of either case. */
  sign: Schema.String,
  signMethod: Schema.Literals(["hmacsha1", "hmacmd5", "aescmac"]),
  /** In the range of its type. Default: the next. */
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

/** Undefined: the address is one of a node of this type. Otherwise what was expected. */
export const addressMisfit = (nodeType: MeshNodeType, meshAddr: number): string | undefined => {
  const { first, last } = addresses[nodeType]
  return meshAddr >= first && meshAddr <= last
    ? undefined
    : `Expected ${first} to ${last}: the addresses of nodes of type ${nodeType}`
}

/** Which cursor nodes of the type move. */
export const cursorOf = (nodeType: MeshNodeType): "unicastCursor" | "provisionerCursor" =>
  nodeType === 1 ? "unicastCursor" : "provisionerCursor"

/** The address of a new node, and where the cursor of its type stands then. */
export interface Placement {
  readonly meshAddr: number
  readonly cursor: number
}

/**
 * Places a node at `meshAddr`, or at the first free address from the cursor on.
 * The cursor goes on to the next free address; after the last of the range it
 * begins again, so that the address of a node that has left is given again as
 * late as possible. `used`: addresses of the network, at least those of this type.
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

/** Bytes that go to the gateways of a network as they are. */
export const MeshRawData = Schema.Struct({
  rawData: Schema.String.check(
    Schema.isPattern(/^(?:[0-9a-f]{2}){1,512}$/i, { expected: "1 to 512 bytes as hex text" })
  )
})
export interface MeshRawData extends Schema.Schema.Type<typeof MeshRawData> {}

/** What a gateway is told bytes by. */
export const meshRawMethod = "thing.mesh.raw"

export class MeshNetworkNotFound extends Schema.TaggedError<MeshNetworkNotFound>()("MeshNetworkNotFound", {
  networkKey: Schema.String
}) {}

/** The project has a network with this key. */
export class NetworkKeyTaken extends Schema.TaggedError<NetworkKeyTaken>()("NetworkKeyTaken", {
  networkKey: Schema.String
}) {}

export class MeshNodeNotFound extends Schema.TaggedError<MeshNodeNotFound>()("MeshNodeNotFound", {
  networkKey: Schema.String,
  deviceId: Schema.String
}) {}

/** The device is a node of the network already. */
export class MeshNodeExists extends Schema.TaggedError<MeshNodeExists>()("MeshNodeExists", {
  networkKey: Schema.String,
  deviceName: Schema.String,
  meshAddr: Schema.Int,
  nodeType: MeshNodeType
}) {}

/** Another node of the network has this address. */
export class MeshAddressTaken extends Schema.TaggedError<MeshAddressTaken>()("MeshAddressTaken", {
  meshAddr: Schema.Int
}) {}

/** All addresses of nodes of this type are used. */
export class MeshNetworkFull extends Schema.TaggedError<MeshNetworkFull>()("MeshNetworkFull", {
  networkKey: Schema.String,
  nodeType: MeshNodeType
}) {}

/** None of the network's gateways is connected. */
export class NoGatewayOnline extends Schema.TaggedError<NoGatewayOnline>()("NoGatewayOnline", {
  networkKey: Schema.String
}) {}
