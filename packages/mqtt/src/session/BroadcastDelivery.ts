/**
 * Hands broadcasts to the connections that have subscribed to some. Broadcasts
 * take turns, so that one to many devices holds up neither another nor what else
 * the broker does.
 */
import { broadcastTopic } from "@device-cloud/alink"
import { type Broadcast, Broadcasts, type ProductKey } from "@device-cloud/core"
import { Effect, type Scope, Semaphore } from "effect"
import type { ConnectionState } from "./ConnectionState.ts"

export interface BroadcastDelivery {
  /** The device of the connection has subscribed to broadcasts. */
  readonly add: (state: ConnectionState, productKey: ProductKey) => void
  /** The connection has ended. */
  readonly remove: (state: ConnectionState) => void
}

/** Connections that one turn serves. */
const turnSize = 100
/** How long a turn takes at least: the broker sends at most 10,000 messages of broadcasts in a second. */
const turnTime = "10 millis"
/** Broadcasts that are under way; further ones are lost. */
const maxUnderway = 256

export const make: Effect.Effect<BroadcastDelivery, never, Broadcasts | Scope.Scope> = Effect.gen(function*() {
  const listeners = new Map<ProductKey, Set<ConnectionState>>()
  const products = new Map<ConnectionState, ProductKey>()
  const turns = yield* Semaphore.make(1)
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let underway = 0

  const deliver = Effect.fnUntraced(function*({ payload, productKey, topic }: Broadcast) {
    const fullTopic = broadcastTopic(productKey, topic)
    const bytes = Buffer.from(payload)
    const states = [...listeners.get(productKey) ?? []]
    for (let start = 0; start < states.length; start += turnSize) {
      const send = Effect.sync(() => {
        for (const { connection } of states.slice(start, start + turnSize)) connection?.broadcast(fullTopic, bytes)
      })
      yield* turns.withPermits(1)(Effect.andThen(send, Effect.sleep(turnTime)))
    }
  })

  yield* (yield* Broadcasts).listen((broadcast) => {
    if (!listeners.has(broadcast.productKey)) return
    if (underway >= maxUnderway) {
      runFork(Effect.logWarning("A broadcast is lost: too many are under way", { productKey: broadcast.productKey }))
      return
    }
    underway++
    runFork(Effect.forkIn(Effect.ensuring(deliver(broadcast), Effect.sync(() => underway--)), scope))
  })

  return {
    add: (state, productKey) => {
      products.set(state, productKey)
      listeners.set(productKey, (listeners.get(productKey) ?? new Set()).add(state))
    },
    remove: (state) => {
      const productKey = products.get(state)
      if (productKey === undefined) return
      products.delete(state)
      const others = listeners.get(productKey)
      others?.delete(state)
      if (others?.size === 0) listeners.delete(productKey)
    }
  }
})
