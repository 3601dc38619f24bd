/**
 * What the nodes of Device Cloud tell each other, on NATS in place of the database.
 *
 * ```ts
 * const Storage = BusNats.layer({ url: "nats://127.0.0.1:4222" }).pipe(
 *   Layer.provideMerge(StoragePg.layer({ url }))
 * )
 * ```
 */
export { layer, type NatsBusOptions } from "./NatsBus.ts"
