/**
 * Every event of Device Cloud on NATS JetStream.
 *
 * ```ts
 * const Events = EventsNats.layer({ url: "nats://127.0.0.1:4222" }).pipe(Layer.provide(Storage))
 * ```
 */
export type { NatsOptions } from "./NatsConnection.ts"
export { layer, make } from "./NatsSink.ts"
