/**
 * Failures of the routes of mesh networks.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchMeshNetwork = failure(
  "NoSuchMeshNetwork",
  Code.noSuchMeshNetwork,
  "The project has no such mesh network"
)

export const NoSuchMeshNode = failure("NoSuchMeshNode", Code.noSuchMeshNode, "The mesh network has no such node")

export const NetworkKeyTaken = failure(
  "NetworkKeyTaken",
  Code.taken,
  "Another mesh network of the project has the key"
)

export const MeshAddressTaken = failure("MeshAddressTaken", Code.taken, "Another node of the network has the address")

export const MeshNetworkFull = failure("MeshNetworkFull", Code.stateForbids, "The mesh network has no address left")

export const MeshNodeExists = failure("MeshNodeExists", Code.stateForbids, "The device is a node of a network already")

export const NoGatewayOnline = failure(
  "NoGatewayOnline",
  Code.stateForbids,
  "No gateway of the mesh network is connected"
)

/** From the errors of the domain. */
export const meshFailures = {
  MeshNetworkNotFound: ({ networkKey }: Core.MeshNetworkNotFound) =>
    NoSuchMeshNetwork.make({ message: `There is no mesh network ${networkKey} in this project` }),
  MeshNodeNotFound: ({ deviceId, networkKey }: Core.MeshNodeNotFound) =>
    NoSuchMeshNode.make({ message: `Device ${deviceId} is no node of network ${networkKey}` }),
  NetworkKeyTaken: ({ networkKey }: Core.NetworkKeyTaken) =>
    NetworkKeyTaken.make({ message: `network_key: there is a mesh network ${networkKey} in this project` }),
  MeshAddressTaken: ({ meshAddr }: Core.MeshAddressTaken) =>
    MeshAddressTaken.make({ message: `mesh_addr: another node of the network has address ${meshAddr}` }),
  MeshNetworkFull: ({ networkKey, nodeType }: Core.MeshNetworkFull) =>
    MeshNetworkFull.make({
      message: `mesh_addr: no address for a node of type ${nodeType} is left in network ${networkKey}; ` +
        "remove nodes first"
    }),
  MeshNodeExists: ({ deviceName, meshAddr, networkKey }: Core.MeshNodeExists) =>
    MeshNodeExists.make({
      message: `Device ${deviceName} is a node of network ${networkKey} already, with address ${meshAddr}`
    }),
  NoGatewayOnline: ({ networkKey }: Core.NoGatewayOnline) =>
    NoGatewayOnline.make({ message: `No gateway of mesh network ${networkKey} is connected` })
}
