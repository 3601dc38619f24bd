/**
 * Port: where shadows are kept. `UplinkStore` writes what devices report,
 * together with the history.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { Shadow } from "./Shadow.ts"

/** A change of the shadow of one device. */
export interface ShadowModification<A> {
  readonly deviceId: DeviceId
  /**
   * Returns a result and the changed shadow; the same object means no change.
   * Pure: the store calls it again with a newer shadow when another writer was
   * faster.
   */
  readonly modify: (shadow: Shadow) => readonly [result: A, shadow: Shadow]
}

/**
 * Laws: `modify` takes at most one modification for each device and loses no
 * concurrent update. A device without stored shadow has the empty one.
 */
export class ShadowStore extends Context.Service<ShadowStore, {
  /** Returns the stored shadows of the `limit` newest devices of a product. */
  readonly sample: (productKey: ProductKey, limit: number) => Effect.Effect<ReadonlyArray<Shadow>, StoreError>
  /** Returns the shadow of a device; none if the device does not exist. */
  readonly get: (deviceId: DeviceId) => Effect.Effect<Option.Option<Shadow>, StoreError>
  /** Changes shadows. Returns the results in the order of the modifications; none for a device that does not exist. */
  readonly modify: <A>(
    modifications: ReadonlyArray<ShadowModification<A>>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/shadow/ShadowStore") {}
