/**
 * Port: where shadows are kept. What devices report is written through
 * `UplinkStore`, together with the history.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { Shadow } from "./Shadow.ts"

/** What to make of the shadow of one device. */
export interface ShadowModification<A> {
  readonly deviceId: DeviceId
  /**
   * Pure: it runs again with a newer shadow when another writer is faster. The
   * same shadow leaves the stored one as it is.
   */
  readonly modify: (shadow: Shadow) => readonly [result: A, shadow: Shadow]
}

/**
 * Laws: `modify` takes at most one modification for each device and loses no
 * concurrent update. A device without stored shadow has the empty one. None
 * stands for a device that does not exist.
 */
export class ShadowStore extends Context.Service<ShadowStore, {
  /** The shadows of the newest devices of a product, those that are stored. */
  readonly sample: (productKey: ProductKey, limit: number) => Effect.Effect<ReadonlyArray<Shadow>, StoreError>
  readonly get: (deviceId: DeviceId) => Effect.Effect<Option.Option<Shadow>, StoreError>
  /** Returns the results in the order of the modifications. */
  readonly modify: <A>(
    modifications: ReadonlyArray<ShadowModification<A>>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/shadow/ShadowStore") {}
