/**
 * Port: the reactions to changes of devices. A reaction is stored in the
 * transaction of the change that causes it, and carried out afterwards.
 *
 * `Presence` and `Uplink` ask this service which reactions to store. Scenes
 * implement it (docs/decisions/0031-presence-without-effects.md).
 */
import { Context, type Effect } from "effect"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import type { DeviceChange } from "./DeviceChange.ts"

/** An execution of a scene, to store together with its cause. */
export interface Reaction {
  readonly executionId: string
  readonly sceneId: string
  readonly projectId: ProjectId
  /** Unix milliseconds. */
  readonly at: number
  readonly event: { readonly _tag: string; readonly at: number }
  readonly chain: ReadonlyArray<string>
}

/** Returns the reactions to store with the changes. Pure: a store may call it again when it repeats a transaction. */
export type ReactTo<A> = (changes: ReadonlyArray<A>) => ReadonlyArray<Reaction>

interface NamedDevice {
  readonly productKey: ProductKey
  readonly deviceName: string
}

/** What rules watch of the properties of one device. */
export interface PropertyWatch {
  /** Returns false if this new value of the property causes no reaction. */
  readonly mayFire: (propertyId: string, value: Json) => boolean
}

export class Reactions extends Context.Service<Reactions, {
  /** Whether the rules of the product are loaded and current. Until then its devices cause no reactions. */
  readonly isLoaded: (productKey: ProductKey) => boolean
  /** Loads the rules of those products whose rules are not loaded. */
  readonly load: (productKeys: ReadonlyArray<ProductKey>) => Effect.Effect<void, StoreError>
  /** Whether this kind of change of the device may cause a reaction. */
  readonly watches: (kind: DeviceChange["_tag"], device: NamedDevice) => boolean
  /** Returns what rules watch of the properties of the device; undefined: no rule watches them. */
  readonly propertyWatch: (device: NamedDevice) => PropertyWatch | undefined
  /** Returns the reactions to a change, to store with it. */
  readonly reactTo: (projectId: ProjectId, change: DeviceChange) => ReadonlyArray<Reaction>
  /** Tells the executor that reactions are stored, so that it starts at once. */
  readonly wake: () => void
}>()("@device-cloud/core/events/Reactions") {}
