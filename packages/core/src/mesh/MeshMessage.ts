/**
 * What a gateway asks for of the mesh networks that it is a gateway of
 * (decisions, sections 8, 13).
 */
import { Effect, Result, Schema } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import { type InputIssue, inputIssues } from "../kernel/InvalidInput.ts"
import {
  deviceNotFound,
  type DeviceReply,
  failure,
  noTopology,
  parameterError,
  success
} from "../uplink/DeviceReply.ts"
import { PageNumber, PageSize } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { Text } from "../kernel/Text.ts"
import { MeshNodeDraft, type MeshNodeExists } from "./MeshNetwork.ts"
import type { MeshNetworks } from "./MeshNetworks.ts"

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

export type MeshRequest =
  | { readonly _tag: "Add" } & typeof Add.Type
  | { readonly _tag: "Delete" } & typeof Delete.Type
  | { readonly _tag: "Get" } & typeof Get.Type

const invalid = ([{ message, path }]: readonly [InputIssue, ...ReadonlyArray<InputIssue>]): DeviceReply =>
  parameterError(path.length === 0 ? message : `${path.join(".")}: ${message}`)

const reader = <S extends Schema.ConstraintDecoder<unknown>, Tag extends string>(schema: S, _tag: Tag) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (params: unknown): DeviceReply | { readonly _tag: Tag } & S["Type"] =>
    Result.match(decode(params), {
      onFailure: (error) => invalid(inputIssues(error)),
      onSuccess: (request) => ({ _tag, ...request as object }) as { readonly _tag: Tag } & S["Type"]
    })
}

/** From the params of `thing.mesh.add`, `delete` and `get`, or the reply that says what is wrong with them. */
export const readMeshRequest = {
  "thing.mesh.add": reader(Add, "Add"),
  "thing.mesh.delete": reader(Delete, "Delete"),
  "thing.mesh.get": reader(Get, "Get")
}

const isSame = (node: MeshNodeExists, { meshAddr = node.meshAddr, nodeType }: typeof Add.Type): boolean =>
  node.nodeType === nodeType && node.meshAddr === meshAddr

const carryOut = Effect.fnUntraced(
  function*(networks: MeshNetworks["Service"], { projectId }: DeviceIdentity, request: MeshRequest) {
    switch (request._tag) {
      case "Add": {
        const { meshAddr } = yield* networks.addNode(projectId, request.networkKey, request).pipe(
          // The gateway may not have heard that it was added.
          Effect.catchTag("MeshNodeExists", (node) => isSame(node, request) ? Effect.succeed(node) : Effect.fail(node))
        )
        return success({ mesh_addr: meshAddr })
      }
      case "Delete":
        yield* networks.removeNode(projectId, request.networkKey, request)
        return success({})
      case "Get": {
        const { page = 1, pageSize = 100 } = request
        const { items } = yield* networks.nodes(projectId, request.networkKey, { page, pageSize })
        return success(items.map((node) => ({
          product_key: node.productKey,
          device_name: node.deviceName,
          mesh_addr: node.meshAddr,
          node_type: node.nodeType
        })))
      }
    }
  }
)

/** The reply of the cloud to the gateway `device`. */
export const answerMesh = Effect.fnUntraced(
  function*(
    networks: MeshNetworks["Service"],
    device: DeviceIdentity,
    request: MeshRequest
  ): Effect.fn.Return<DeviceReply, StoreError> {
    return yield* networks.gateways(device.projectId, request.networkKey).pipe(
      Effect.flatMap((gateways) =>
        gateways.includes(device.deviceId) ? carryOut(networks, device, request) : Effect.succeed(noTopology)
      ),
      Effect.catchTags({
        MeshNetworkNotFound: () => Effect.succeed(noTopology),
        MeshNodeNotFound: () => Effect.succeed(noTopology),
        DeviceNotFound: () => Effect.succeed(deviceNotFound),
        DeviceDisabled: () => Effect.succeed(failure(6204, "device disabled")),
        WrongSignature: () => Effect.succeed(failure(6287, "sign: invalid sign")),
        NotAGateway: () => Effect.succeed(failure(6402, "node_type: the device cannot be a gateway")),
        MeshNodeExists: ({ meshAddr, nodeType }) =>
          Effect.succeed(parameterError(`the device is a node of type ${nodeType} with address ${meshAddr} already`)),
        MeshAddressTaken: () => Effect.succeed(parameterError("mesh_addr: another node has this address")),
        MeshNetworkFull: () => Effect.succeed(failure(6400, "all addresses of this type of node are used")),
        InvalidInput: ({ issues: [{ message }] }) => Effect.succeed(parameterError(`mesh_addr: ${message}`))
      })
    )
  }
)
