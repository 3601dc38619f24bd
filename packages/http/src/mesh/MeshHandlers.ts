/**
 * Handlers of the routes of mesh networks.
 */
import { type MeshNetwork, MeshNetworks, type MeshNode } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
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
        CurrentPrincipal.use(({ projectId }) =>
          respond(networks.create(projectId, toCamelCase(payload ?? {})), networkKeys)
        ),
      listMeshNetworks: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => networks.list(projectId, page), networkRecord)
        ),
      getMeshNetwork: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(networks.get(projectId, params.network_key), networkRecord)),
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

const networkKeys = (network: Pick<MeshNetwork, "networkKey" | "appKey">): typeof MeshNetworkKeys.Type => ({
  network_key: network.networkKey,
  app_key: network.appKey
})

const networkRecord = (network: MeshNetwork): typeof MeshNetworkRecord.Type => ({
  ...networkKeys(network),
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
