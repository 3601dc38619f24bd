/**
 * Port: where shadows are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { CommandProgress } from "../command/Command.ts"
import type { DeviceId } from "../device/Device.ts"
import type { ProductKey } from "../product/Product.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Facts } from "../history/HistoryEntry.ts"
import type { Shadow } from "./Shadow.ts"

/** What to make of the shadow of one device. */
export interface ShadowModification<A> {
  readonly deviceId: DeviceId
  /**
   * Pure: it is called again with a newer shadow when another writer was
   * faster. Returning the shadow that it was given leaves it as it is. The
   * facts are added to the history of the device.
   */
  readonly modify: (shadow: Shadow) => readonly [answer: A, shadow: Shadow, facts?: Facts]
}

/**
 * Laws: `modify` takes at most one modification per device and loses no
 * concurrent update. The modifications that met no concurrent writer are one
 * transaction with their facts and all outcomes of commands; the others follow
 * in further ones. A device without stored shadow has the empty one. None
 * stands for a device that does not exist.
 */
export class ShadowStore extends Context.Service<ShadowStore, {
  /** The shadows of the newest devices of a product, those that are stored. */
  readonly sample: (productKey: ProductKey, limit: number) => Effect.Effect<ReadonlyArray<Shadow>, StoreError>
  readonly get: (deviceId: DeviceId) => Effect.Effect<Option.Option<Shadow>, StoreError>
  /** In the order of the modifications. */
  readonly modify: <A>(
    modifications: ReadonlyArray<ShadowModification<A>>,
    /** What devices answered to commands, as `CommandStore.advance` takes it. */
    outcomes?: ReadonlyArray<CommandProgress>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/shadow/ShadowStore") {}
