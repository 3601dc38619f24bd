/**
 * What a change of a device sets off. A reaction is stored in the transaction of
 * the change that causes it and carried out afterwards.
 *
 * Whoever changes devices asks this service which reactions to store. Scenes
 * implement it (`SceneTriggers.layerReactions`).
 */
import { Context, type Effect } from "effect"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type { DeviceChange } from "./DeviceChange.ts"

/** An execution of a scene that is to be stored with its cause. */
export interface Reaction {
  readonly executionId: string
  readonly sceneId: string
  readonly projectId: ProjectId
  /** Unix milliseconds. */
  readonly at: number
  readonly event: { readonly _tag: string; readonly at: number }
  readonly chain: ReadonlyArray<string>
}

/** Returns what is to be stored with changes. Pure: a store may call it again when it repeats a transaction. */
export type ReactTo<A> = (changes: ReadonlyArray<A>) => ReadonlyArray<Reaction>

interface NamedDevice {
  readonly productKey: ProductKey
  readonly deviceName: string
}

/** Watches the properties of one device. */
export interface PropertyWatch {
  /** False: this new value of the property sets nothing off. */
  readonly mayFire: (propertyId: string, value: Json) => boolean
}

export class Reactions extends Context.Service<Reactions, {
  /** Whether the rules of the product are loaded and current. Devices of another product set nothing off. */
  readonly isLoaded: (productKey: ProductKey) => boolean
  /** Loads the rules of the products that are not loaded. */
  readonly load: (productKeys: ReadonlyArray<ProductKey>) => Effect.Effect<void, StoreError>
  /** Whether this kind of change of the device may set something off. */
  readonly watches: (kind: DeviceChange["_tag"], device: NamedDevice) => boolean
  /** What watches properties of the device; undefined: nothing does. */
  readonly propertyWatch: (device: NamedDevice) => PropertyWatch | undefined
  /** The reactions to a change, each to be stored with it. */
  readonly reactTo: (projectId: ProjectId, change: DeviceChange) => ReadonlyArray<Reaction>
  /** Reactions are stored: whoever carries them out need not wait for its next look. */
  readonly wake: () => void
}>()("@device-cloud/core/events/Reactions") {}
