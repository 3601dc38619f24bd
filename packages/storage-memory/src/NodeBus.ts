/**
 * The notices of nodes that live in one process and share their memory.
 */
import { NodeBus, NoticeListeners } from "@device-cloud/core"
import { Context, Effect, Layer } from "effect"

/** What carries the notices between nodes. */
export class NodeNetwork extends Context.Service<NodeNetwork, {
  /** Those who listen on each node, by its id. */
  readonly nodes: Map<string, NoticeListeners>
  /** Returns another id at each call. */
  readonly nextNodeId: Effect.Effect<string>
}>()("@device-cloud/storage-memory/NodeNetwork") {}

const makeNetwork = Effect.sync(() => {
  let count = 0
  return NodeNetwork.of({ nodes: new Map(), nextNodeId: Effect.sync(() => `node-${++count}`) })
})

const make = Effect.gen(function*() {
  const { nextNodeId, nodes } = yield* NodeNetwork
  const nodeId = yield* nextNodeId
  const listeners = new NoticeListeners()
  yield* Effect.acquireRelease(
    Effect.sync(() => nodes.set(nodeId, listeners)),
    () => Effect.sync(() => nodes.delete(nodeId))
  )
  return NodeBus.of({
    nodeId,
    publish: (notices, to) =>
      Effect.sync(() => {
        for (const [id, listeners] of nodes) {
          if (to === undefined || to === id) notices.forEach((notice) => listeners.hear(notice))
        }
      }),
    listen: listeners.listen
  })
})

/** Another node on the network of the nodes that are there. */
export const layerNode: Layer.Layer<NodeBus, never, NodeNetwork> = Layer.effect(NodeBus, make)

/** A node with a network of its own. Stands alone: it needs no other store of this package. */
export const layer: Layer.Layer<NodeBus | NodeNetwork> = Layer.provideMerge(
  layerNode,
  Layer.effect(NodeNetwork, makeNetwork)
)
