/**
 * The routes of mesh networks (docs/api/mesh.md).
 */
import { DeviceName, MeshNetworkDraft, MeshNodeDraft, MeshNodeType, MeshRawData, ProductKey } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { DeviceDisabled, NoSuchDevice } from "../device/DeviceFailures.ts"
import { NotAGateway } from "../gateway/TopologyFailures.ts"
import {
  MeshAddressTaken,
  MeshNetworkFull,
  MeshNodeExists,
  NetworkKeyTaken,
  NoGatewayOnline,
  NoSuchMeshNetwork,
  NoSuchMeshNode
} from "./MeshFailures.ts"
import { NoSuchProject } from "../project/ProjectFailures.ts"
import { WrongSignature } from "../provisioning/ProvisioningFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const keys = {
  network_key: Schema.String.annotate({ description: "32 hex digits" }),
  app_key: Schema.String.annotate({ description: "32 hex digits" })
}

/** The keys of a mesh network. */
export const MeshNetworkKeys = Schema.Struct(keys).annotate({ identifier: "MeshNetworkKeys" })

/** A mesh network. */
export const MeshNetworkRecord = Schema.Struct({
  ...keys,
  unicast_cursor: Schema.Int.annotate({ description: "The next free address for a sub-device, 256 to 32767" }),
  provisioner_cursor: Schema.Int.annotate({ description: "The next free address for a gateway, 1 to 255" }),
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "MeshNetworkRecord" })

/** A node of a mesh network. */
export const MeshNodeRecord = Schema.Struct({
  device_id: Schema.String,
  product_key: Schema.String,
  device_name: Schema.String,
  mesh_addr: Schema.Int,
  node_type: MeshNodeType.annotate({ description: "1: sub-device, 2: gateway" }),
  created_at: DateText
}).annotate({ identifier: "MeshNodeRecord" })

/** The group `mesh` of the typed client. */
export class MeshApi extends HttpApiGroup.make("mesh").add(
  HttpApiEndpoint.post("createMeshNetwork", "/mesh/networks", {
    payload: [toSnakeCase(MeshNetworkDraft), Schema.Null],
    success: Envelope(MeshNetworkKeys),
    error: [NoSuchProject, NetworkKeyTaken]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a mesh network")
    .annotate(OpenApi.Description, "Keys that are left out, or empty, are made. The body may be left out."),
  HttpApiEndpoint.get("listMeshNetworks", "/mesh/networks", { query: pageQuery, success: Paged(MeshNetworkRecord) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the mesh networks of the project"),
  HttpApiEndpoint.get("getMeshNetwork", "/mesh/networks/:network_key", {
    params: PathParams.network,
    success: Envelope(MeshNetworkRecord),
    error: NoSuchMeshNetwork
  }).annotate(OpenApi.Summary, "Read a mesh network"),
  HttpApiEndpoint.delete("deleteMeshNetwork", "/mesh/networks/:network_key", {
    params: PathParams.network,
    success: EnvelopeOnly,
    error: NoSuchMeshNetwork
  }).annotate(OpenApi.Summary, "Delete a mesh network with its nodes"),
  HttpApiEndpoint.post("addMeshNode", "/mesh/networks/:network_key/nodes", {
    params: PathParams.network,
    payload: toSnakeCase(MeshNodeDraft).annotate({
      examples: [{
        product_key: ProductKey.make("a1PkDirect01"),
        device_name: DeviceName.make("dev001"),
        sign: "9ce2bd3d5c627cd4fcee76eeb3ebb7e5",
        sign_method: "aescmac",
        node_type: 1
      }]
    }),
    success: EnvelopeOnly,
    error: [
      NoSuchMeshNetwork,
      NoSuchDevice,
      NotAGateway,
      DeviceDisabled,
      WrongSignature,
      MeshAddressTaken,
      MeshNetworkFull,
      MeshNodeExists
    ]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Add a device to a mesh network")
    .annotate(
      OpenApi.Description,
      "`sign` is the signature of `deviceName` + device_name + `productKey` + product_key with the device's secret, in " +
        "hex. `node_type` 1 is a sub-device with an address from 256 to 32767, 2 a gateway with one from 1 to 255; " +
        "without `mesh_addr` it gets the next free one."
    ),
  HttpApiEndpoint.get("listMeshNodes", "/mesh/networks/:network_key/nodes", {
    params: PathParams.network,
    query: pageQuery,
    success: Paged(MeshNodeRecord),
    error: NoSuchMeshNetwork
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the nodes of a mesh network"),
  HttpApiEndpoint.delete("removeMeshNode", "/mesh/networks/:network_key/nodes/:device_id", {
    params: PathParams.meshNode,
    success: EnvelopeOnly,
    error: [NoSuchMeshNetwork, NoSuchDevice, NoSuchMeshNode]
  }).annotate(OpenApi.Summary, "Remove a device from a mesh network"),
  HttpApiEndpoint.post("sendMeshRawData", "/mesh/networks/:network_key/raw-data", {
    params: PathParams.network,
    payload: toSnakeCase(MeshRawData).annotate({ examples: [{ raw_data: "d101ff" }] }),
    success: EnvelopeOnly,
    error: [NoSuchMeshNetwork, NoGatewayOnline]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send bytes to a mesh network")
    .annotate(OpenApi.Description, "Each connected gateway of the network gets them. At least one must be connected.")
).annotate(OpenApi.Title, "Mesh") {}
