/**
 * Port: where shadows are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../StoreError.ts"
import type { Shadow } from "./Shadow.ts"

/** What to make of the shadow of one device. */
export interface ShadowModification<A> {
  readonly deviceId: DeviceId
  /**
   * Pure: it is called again with a newer shadow when another writer was
   * faster. Returning the shadow that it was given writes nothing.
   */
  readonly modify: (shadow: Shadow) => readonly [A, Shadow]
}

/**
 * Laws: `modify` takes at most one modification per device and loses no
 * concurrent update. The modifications that met no concurrent writer are one
 * transaction; the others follow in further ones. A device without stored
 * shadow has the empty one. None stands for a device that does not exist.
 */
export class ShadowStore extends Context.Service<ShadowStore, {
  readonly get: (deviceId: DeviceId) => Effect.Effect<Option.Option<Shadow>, StoreError>
  /** In the order of the modifications. */
  readonly modify: <A>(
    modifications: ReadonlyArray<ShadowModification<A>>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/shadow/ShadowStore") {}
