/**
 * Handlers of the routes of mesh networks.
 */
import { type MeshNetwork, MeshNetworks, type MeshNode } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import type { Caller } from "../middleware/Caller.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { MeshNetworkKeys, MeshNetworkRecord, MeshNodeRecord } from "./MeshApi.ts"

/** Implements the group `mesh`. */
export const layer = group(
  Api,
  "mesh",
  Effect.fnUntraced(function*(handlers) {
    const networks = yield* MeshNetworks
    return handlers.handleAll({
      createMeshNetwork: ({ payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(networks.create(caller.projectId, toCamelCase(payload ?? {})), networkKeys(caller))
        ),
      listMeshNetworks: ({ query }) =>
        CurrentPrincipal.use((caller) =>
          respondPage(query, (page) => networks.list(caller.projectId, page), networkRecord(caller))
        ),
      getMeshNetwork: ({ params }) =>
        CurrentPrincipal.use((caller) =>
          respond(networks.get(caller.projectId, params.network_key), networkRecord(caller))
        ),
      deleteMeshNetwork: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(networks.remove(projectId, params.network_key))),
      addMeshNode: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(networks.addNode(projectId, params.network_key, toCamelCase(payload)))
        ),
      listMeshNodes: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => networks.nodes(projectId, params.network_key, page), nodeRecord)
        ),
      removeMeshNode: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(networks.removeNode(projectId, params.network_key, { deviceId: params.device_id }))
        ),
      sendMeshRawData: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(networks.sendRaw(projectId, params.network_key, toCamelCase(payload)))
        )
    })
  })
)

const networkKeys =
  (caller: Caller) => (network: Pick<MeshNetwork, "networkKey" | "appKey">): typeof MeshNetworkKeys.Type => ({
    network_key: caller.reveal(network.networkKey),
    app_key: caller.reveal(network.appKey)
  })

const networkRecord = (caller: Caller) => (network: MeshNetwork): typeof MeshNetworkRecord.Type => ({
  ...networkKeys(caller)(network),
  unicast_cursor: network.unicastCursor,
  provisioner_cursor: network.provisionerCursor,
  created_at: dateText(network.createdAt),
  updated_at: dateText(network.updatedAt)
})

const nodeRecord = (node: MeshNode): typeof MeshNodeRecord.Type => ({
  device_id: node.deviceId,
  product_key: node.productKey,
  device_name: node.deviceName,
  mesh_addr: node.meshAddr,
  node_type: node.nodeType,
  created_at: dateText(node.createdAt)
})
