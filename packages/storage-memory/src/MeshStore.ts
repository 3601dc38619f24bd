/**
 * Mesh networks in memory.
 */
import { cursorOf, type MeshNode, MeshStore, type NodeAdded, place } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses nodes whose device its tables do not have. */
export const layer: Layer.Layer<MeshStore, never, Tables> = Layer.effect(
  MeshStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ devices, meshNetworks, nextId, projects }: Tables["Service"]) => {
  const find = (projectId: string, networkKey: string) =>
    [...meshNetworks.values()].find(({ network }) =>
      network.projectId === projectId && network.networkKey === networkKey
    )

  return MeshStore.of({
    insert: (draft) =>
      Effect.sync(() => {
        if (!projects.has(draft.projectId)) return "no-project"
        if (find(draft.projectId, draft.networkKey) !== undefined) return "taken"
        const networkId = nextId()
        meshNetworks.set(networkId, { network: { ...draft, networkId }, nodes: new Map() })
        return "inserted"
      }),
    get: (projectId, networkKey) =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(find(projectId, networkKey)), ({ network }) => network)),
    list: (projectId, page) =>
      Effect.sync(() =>
        paginate(
          [...meshNetworks.values()].map(({ network }) => network).filter((network) => network.projectId === projectId),
          page
        )
      ),
    remove: (projectId, networkKey) =>
      Effect.sync(() => {
        const found = find(projectId, networkKey)
        return found !== undefined && meshNetworks.delete(found.network.networkId)
      }),
    addNode: (networkId, { at, deviceId, meshAddr, nodeType }) =>
      Effect.sync((): NodeAdded => {
        const stored = meshNetworks.get(networkId)
        const device = devices.get(deviceId)
        if (stored === undefined) return { _tag: "NoNetwork" }
        if (device === undefined) return { _tag: "NoDevice" }
        const { network, nodes } = stored
        const known = nodes.get(deviceId)
        if (known !== undefined) return { _tag: "Exists", node: known }
        const used = new Set([...nodes.values()].map((node) => node.meshAddr))
        const placed = place(nodeType, network[cursorOf(nodeType)], used, meshAddr)
        if (placed === "taken") return { _tag: "Taken" }
        if (placed === "full") return { _tag: "Full" }
        const { deviceName, productKey } = device
        const node: MeshNode = {
          deviceId,
          productKey,
          deviceName,
          nodeType,
          meshAddr: placed.meshAddr,
          createdAt: at
        }
        nodes.set(deviceId, node)
        stored.network = { ...network, [cursorOf(nodeType)]: placed.cursor, updatedAt: at }
        return { _tag: "Added", node }
      }),
    removeNode: (networkId, deviceId) =>
      Effect.sync(() => meshNetworks.get(networkId)?.nodes.delete(deviceId) ?? false),
    nodes: (networkId, page) =>
      Effect.sync(() => paginate([...meshNetworks.get(networkId)?.nodes.values() ?? []], page)),
    gateways: (networkId) =>
      Effect.sync(() =>
        [...meshNetworks.get(networkId)?.nodes.values() ?? []]
          .filter(({ nodeType }) => nodeType === 2)
          .map(({ deviceId }) => deviceId)
      )
  })
}
