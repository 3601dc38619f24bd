/**
 * Port: where remote configurations are kept, and which devices have them.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { Configuration, ConfigurationProgress, ConfigurationScope } from "./Configuration.ts"

/** A configuration before it is stored. */
export type NewConfiguration = Omit<Configuration, "version">

/**
 * Laws: each call is one transaction. The store keeps the latest
 * `keptConfigurations` versions of each product and device, and removes them with
 * the product or device.
 */
export class ConfigurationStore extends Context.Service<ConfigurationStore, {
  /**
   * Stores the next version. Returns it with the versions that are no longer kept;
   * none: there is no such product or device.
   */
  readonly insert: (
    scope: ConfigurationScope,
    configuration: NewConfiguration
  ) => Effect.Effect<
    Option.Option<{ readonly stored: Configuration; readonly dropped: ReadonlyArray<Configuration> }>,
    StoreError
  >
  /** Returns the kept versions, newest first. */
  readonly versions: (scope: ConfigurationScope) => Effect.Effect<ReadonlyArray<Configuration>, StoreError>
  /** Removes all versions and returns them. */
  readonly remove: (scope: ConfigurationScope) => Effect.Effect<ReadonlyArray<Configuration>, StoreError>
  /** Returns the latest version of the device, or else of its product. */
  readonly current: (
    device: Pick<DeviceIdentity, "deviceId" | "productKey">
  ) => Effect.Effect<Option.Option<Configuration>, StoreError>
  /** Notes what is offered to a device; `applied` stays when the same configuration is offered again. */
  readonly note: (offer: Omit<ConfigurationProgress, "state">) => Effect.Effect<void, StoreError>
  /** Notes that a device has applied what was offered to it last, if anything was. */
  readonly confirm: (deviceId: DeviceId, at: number) => Effect.Effect<void, StoreError>
  /** Returns what the devices of the product last heard, the latest first, those of one instant by device id. */
  readonly progress: (
    productKey: ProductKey,
    page: PageRequest
  ) => Effect.Effect<Page<ConfigurationProgress>, StoreError>
}>()("@device-cloud/core/configuration/ConfigurationStore") {}
