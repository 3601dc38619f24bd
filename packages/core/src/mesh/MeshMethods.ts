/**
 * The device methods with which gateways read and change the nodes of their mesh
 * networks (docs/protocol/mesh.md).
 */
import { Effect, Layer, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import {
  deviceNotFound,
  type DeviceReply,
  failure,
  fieldError,
  noTopology,
  parameterError,
  success
} from "../uplink/DeviceReply.ts"
import * as DeviceMethod from "../uplink/DeviceMethod.ts"
import { DeviceMethods } from "../uplink/DeviceMethods.ts"
import { PageNumber, PageSize } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { Text } from "../kernel/Text.ts"
import { MeshNodeDraft, type MeshNodeExists } from "./MeshNetwork.ts"
import { MeshNetworks } from "./MeshNetworks.ts"

const { deviceName, productKey } = MeshNodeDraft.fields
const networkKey = Text(128)

const names = { networkKey: "network_key", productKey: "product_key", deviceName: "device_name" } as const

const Add = Schema.Struct({ networkKey, ...MeshNodeDraft.fields }).pipe(
  Schema.encodeKeys({ ...names, signMethod: "sign_method", meshAddr: "mesh_addr", nodeType: "node_type" })
)
const Delete = Schema.Struct({ networkKey, productKey, deviceName }).pipe(Schema.encodeKeys(names))
const Get = Schema.Struct({
  networkKey,
  page: Schema.optional(PageNumber),
  pageSize: Schema.optional(PageSize)
}).pipe(Schema.encodeKeys({ networkKey: "network_key", pageSize: "page_size" }))

/** Returns whether the request asks for the node that exists. */
const isSame = (node: MeshNodeExists, { meshAddr = 0, nodeType }: typeof Add.Type): boolean =>
  node.nodeType === nodeType && (meshAddr === 0 || node.meshAddr === meshAddr)

/** Runs the request if the device is a gateway of the network; returns the reply that refuses it otherwise. */
const asGateway = (
  { deviceId, projectId }: DeviceIdentity,
  networkKey: string,
  run: (networks: MeshNetworks["Service"]) => Effect.Effect<DeviceReply, MeshFailure | StoreError>
): Effect.Effect<DeviceReply, StoreError, MeshNetworks> =>
  MeshNetworks.use((networks) =>
    networks.gateways(projectId, networkKey).pipe(
      Effect.flatMap((gateways) => gateways.includes(deviceId) ? run(networks) : Effect.succeed(noTopology)),
      Effect.catchIf(
        (error): error is MeshFailure => error._tag !== "StoreError",
        (error) => Effect.succeed(refusal(error))
      )
    )
  )

type MeshFailure = Exclude<
  Effect.Error<ReturnType<MeshNetworks["Service"]["addNode"] | MeshNetworks["Service"]["removeNode"]>>,
  StoreError
>

const refusal = (error: MeshFailure): DeviceReply => {
  switch (error._tag) {
    case "MeshNetworkNotFound":
    case "MeshNodeNotFound":
      return noTopology
    case "DeviceNotFound":
      return deviceNotFound
    case "DeviceDisabled":
      return failure(6204, "device disabled")
    case "WrongSignature":
      return fieldError("sign", "invalid sign", 6287)
    case "NotAGateway":
      return fieldError("node_type", "the device cannot be a gateway", 6402)
    case "MeshNodeExists":
      return parameterError(`the device is a node of type ${error.nodeType} with address ${error.meshAddr} already`)
    case "MeshAddressTaken":
      return fieldError("mesh_addr", "another node has this address")
    case "MeshNetworkFull":
      return failure(6400, "all addresses of this type of node are used")
    case "InvalidInput":
      return fieldError("mesh_addr", `${error.issues[0].message}`)
  }
}

const add = DeviceMethod.request({
  name: "thing.mesh.add",
  action: "PostMeshTopo",
  lane: "gateway",
  decode: Add,
  handle: (request, { device }) =>
    asGateway(
      device,
      request.networkKey,
      (networks) =>
        networks.addNode(device.projectId, request.networkKey, request).pipe(
          // A gateway that lost the reply asks again.
          Effect.catchTag("MeshNodeExists", (node) => isSame(node, request) ? Effect.succeed(node) : Effect.fail(node)),
          Effect.map(({ meshAddr }) => success({ mesh_addr: meshAddr }))
        )
    )
})

const remove = DeviceMethod.request({
  name: "thing.mesh.delete",
  action: "PostMeshTopo",
  lane: "gateway",
  decode: Delete,
  handle: (request, { device }) =>
    asGateway(
      device,
      request.networkKey,
      (networks) => Effect.as(networks.removeNode(device.projectId, request.networkKey, request), success({}))
    )
})

const get = DeviceMethod.request({
  name: "thing.mesh.get",
  action: "PostMeshTopo",
  lane: "gateway",
  decode: Get,
  handle: ({ networkKey, page = 1, pageSize = 100 }, { device }) =>
    asGateway(
      device,
      networkKey,
      (networks) =>
        Effect.map(networks.nodes(device.projectId, networkKey, { page, pageSize }), ({ items }) =>
          success(items.map((node) => ({
            product_key: node.productKey,
            device_name: node.deviceName,
            mesh_addr: node.meshAddr,
            node_type: node.nodeType
          }))))
    )
})

/** Registers the methods. */
export const layer: Layer.Layer<never, never, DeviceMethods | MeshNetworks> = Layer.effectDiscard(
  DeviceMethods.use((registry) => registry.register([add, remove, get])).pipe(Effect.orDie)
)
