/**
 * The notices of nodes that live in one process and share their memory.
 */
import { NodeBus, type Notice } from "@device-cloud/core"
import { Context, Effect, Layer, PubSub, Stream } from "effect"

interface Sent {
  /** The only node that hears the notice; undefined: all hear it. */
  readonly to: string | undefined
  readonly notice: Notice
}

/** What carries the notices between nodes. */
export class NodeNetwork extends Context.Service<NodeNetwork, {
  readonly sent: PubSub.PubSub<Sent>
  /** Returns another id at each call. */
  readonly nextNodeId: Effect.Effect<string>
}>()("@device-cloud/storage-memory/NodeNetwork") {}

const makeNetwork = Effect.gen(function*() {
  let nodes = 0
  return NodeNetwork.of({
    sent: yield* Effect.acquireRelease(PubSub.unbounded<Sent>(), PubSub.shutdown),
    nextNodeId: Effect.sync(() => `node-${++nodes}`)
  })
})

const make = Effect.gen(function*() {
  const { nextNodeId, sent } = yield* NodeNetwork
  const nodeId = yield* nextNodeId
  return NodeBus.of({
    nodeId,
    publish: (notices, to) => Effect.asVoid(PubSub.publishAll(sent, notices.map((notice) => ({ to, notice })))),
    notices: Stream.fromPubSub(sent).pipe(
      Stream.filter(({ to }) => to === undefined || to === nodeId),
      Stream.map(({ notice }) => notice)
    )
  })
})

/** Another node on the network of the nodes that are there. */
export const layerNode: Layer.Layer<NodeBus, never, NodeNetwork> = Layer.effect(NodeBus, make)

/** A node with a network of its own. Stands alone: it needs no other store of this package. */
export const layer: Layer.Layer<NodeBus | NodeNetwork> = Layer.provideMerge(
  layerNode,
  Layer.effect(NodeNetwork, makeNetwork)
)
