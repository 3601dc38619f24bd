/**
 * Sends a message to all devices of a product that listen to it at this moment, on
 * whichever node they are connected (docs/protocol/commands.md#broadcasts).
 */
import { Clock, Context, Effect, Layer, Option, Result, Schema, type Scope } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { Base64 } from "effect/encoding"
import { NodeBus } from "../cluster/NodeBus.ts"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import { RateWindow } from "../kernel/RateWindow.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { ProductKey, ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { ProjectId } from "../project/Project.ts"
import { bytesOf, decodeUserMessage, type UserMessage } from "./UserMessage.ts"

export class Broadcasts extends Context.Service<Broadcasts, {
  /**
   * Hands a message of at most 4,096 bytes to the transports of all nodes. Devices
   * that are not connected, or not subscribed, never get it. Fails with
   * `TooManyBroadcasts` if the product has had one within a second, as far as this node has heard, and
   * with `StoreError`, before any device gets the message, if other nodes cannot be told.
   */
  readonly send: (
    projectId: ProjectId,
    productKey: ProductKey,
    message: UserMessage
  ) => Effect.Effect<void, InvalidInput | ProductNotFound | TooManyBroadcasts | StoreError>
  /** For transports: calls `deliver` with each broadcast until the scope closes. */
  readonly listen: (deliver: (broadcast: Broadcast) => void) => Effect.Effect<void, never, Scope.Scope>
}>()("@device-cloud/core/command/Broadcasts") {
  static readonly layer: Layer.Layer<Broadcasts, never, ProductStore | NodeBus> = Layer.effect(
    Broadcasts,
    Effect.suspend(() => make)
  )
}

/** A message to the devices of a product. */
export interface Broadcast {
  readonly productKey: ProductKey
  /** Levels behind those that name the product. */
  readonly topic: string
  readonly payload: Uint8Array
}

/** Bytes of a broadcast: as base64 it fits one notice between nodes. */
export const maxBroadcastBytes = 4096

/** The product has had a broadcast within a second. */
export class TooManyBroadcasts extends DomainError<TooManyBroadcasts>()(
  "TooManyBroadcasts",
  {
    productKey: Schema.String
  },
  ({ productKey }) => `Product ${productKey} has had a broadcast within a second; try again later`
) {}

/** One broadcast of a product in a second. */
const rate = { limit: 1, window: 1000, capacity: 10_000 } as const

const BroadcastSent = NodeBus.channel(
  "command/broadcast",
  // A bus may take equal notices for one: each has a number of its node.
  Schema.Struct({
    node: Schema.String,
    number: Schema.Int,
    productKey: ProductKey,
    topic: Schema.String,
    payload: Schema.String
  })
)

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const products = yield* ProductStore
  const channel = yield* BroadcastSent
  const { nodeId: node } = yield* NodeBus
  const sent = new RateWindow(rate)
  const listeners = new Set<(broadcast: Broadcast) => void>()
  let number = 0

  const deliver = (broadcast: Broadcast) => {
    for (const listener of listeners) listener(broadcast)
  }

  yield* channel.subscribe({
    heard: ({ payload, productKey, topic, ...notice }) =>
      Effect.sync(() => {
        if (notice.node === node) return
        sent.hit(productKey, clock.currentTimeMillisUnsafe())
        const bytes = Base64.decode(payload)
        if (Result.isSuccess(bytes)) deliver({ productKey, topic, payload: bytes.success })
      }),
    // Who does not hear it is as one who is not connected.
    missed: Effect.void
  })

  return Broadcasts.of({
    send: Effect.fn("Broadcasts.send")(function*(projectId, productKey, input) {
      const message = yield* decodeUserMessage(input)
      const payload = bytesOf(message)
      if (payload.length > maxBroadcastBytes) {
        const expected = `Expected at most ${maxBroadcastBytes} bytes`
        return yield* new InvalidInput({ issues: [{ path: ["payload"], message: expected }] })
      }
      if (Option.isNone(yield* products.get(projectId, productKey))) return yield* new ProductNotFound({ productKey })
      const now = yield* Clock.currentTimeMillis
      if (sent.fullUntil(productKey) > now) return yield* new TooManyBroadcasts({ productKey })
      sent.hit(productKey, now)
      const { topic } = message
      yield* channel.publish([{ node, number: ++number, productKey, topic, payload: Base64.encode(payload) }])
      deliver({ productKey, topic, payload })
    }),
    listen: (deliver) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => listeners.add(deliver)),
        () => Effect.sync(() => listeners.delete(deliver))
      ))
  })
})
