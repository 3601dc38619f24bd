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
  MeshNetworkNotFound: ({ message }: Core.MeshNetworkNotFound) => NoSuchMeshNetwork.make({ message }),
  MeshNodeNotFound: ({ message }: Core.MeshNodeNotFound) => NoSuchMeshNode.make({ message }),
  NetworkKeyTaken: ({ message }: Core.NetworkKeyTaken) => NetworkKeyTaken.make({ message: `network_key: ${message}` }),
  MeshAddressTaken: ({ message }: Core.MeshAddressTaken) => MeshAddressTaken.make({ message: `mesh_addr: ${message}` }),
  MeshNetworkFull: ({ message }: Core.MeshNetworkFull) => MeshNetworkFull.make({ message: `mesh_addr: ${message}` }),
  MeshNodeExists: ({ message }: Core.MeshNodeExists) => MeshNodeExists.make({ message }),
  NoGatewayOnline: ({ message }: Core.NoGatewayOnline) => NoGatewayOnline.make({ message })
}
