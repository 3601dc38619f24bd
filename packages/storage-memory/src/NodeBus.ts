/**
 * The notices of nodes that live in one process and share their memory.
 */
import { NodeBus, type Notice } from "@device-cloud/core"
import { Effect, Layer, PubSub, Stream } from "effect"

const make = Effect.map(
  Effect.acquireRelease(PubSub.unbounded<Notice>(), PubSub.shutdown),
  (published) =>
    NodeBus.of({
      publish: (notices) => Effect.asVoid(PubSub.publishAll(published, notices)),
      notices: Stream.fromPubSub(published)
    })
)

/** Stands alone: it needs no other store of this package. */
export const layer: Layer.Layer<NodeBus> = Layer.effect(NodeBus, make)
