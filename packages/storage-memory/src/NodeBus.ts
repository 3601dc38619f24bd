/**
 * What nodes tell each other, when they are in one process and share their memory.
 */
import { NodeBus, type NodeNotice } from "@device-cloud/core"
import { Effect, Layer, PubSub, Stream } from "effect"

const make = Effect.map(
  Effect.acquireRelease(PubSub.unbounded<NodeNotice>(), PubSub.shutdown),
  (notices) =>
    NodeBus.of({
      tell: (told) => Effect.asVoid(PubSub.publishAll(notices, told)),
      heard: Stream.fromPubSub(notices)
    })
)

export const layer: Layer.Layer<NodeBus> = Layer.effect(NodeBus, make)
