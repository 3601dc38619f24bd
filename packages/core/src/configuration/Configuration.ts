/**
 * Remote configurations: files that devices of a product, or one device, fetch
 * (docs/api/configurations.md).
 */
import { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { Text } from "../kernel/Text.ts"
import type { ProductKey } from "../product/Product.ts"

/** Bytes of a configuration. */
export const maxConfigurationSize = 65_536

/** Versions that are kept for each product and each device. */
export const keptConfigurations = 10

/** Whose configuration it is. That of a device wins over that of its product. */
export type ConfigurationScope = { readonly productKey: ProductKey } | { readonly deviceId: DeviceId }

/** How devices read the content. */
export const ConfigurationFormat = Schema.Literals(["json", "text"])
export type ConfigurationFormat = typeof ConfigurationFormat.Type

export const ConfigurationDraft = Schema.Struct({
  format: ConfigurationFormat,
  /** At most {@link maxConfigurationSize} bytes in UTF-8; valid JSON if the format says so. */
  content: Text(maxConfigurationSize)
})
export interface ConfigurationDraft extends Schema.Schema.Type<typeof ConfigurationDraft> {}

export interface Configuration extends ConfigurationDraft {
  /** Unique among all configurations; devices know it as `configId`. */
  readonly configurationId: string
  /** 1 for the first of the product or device; grows by one. */
  readonly version: number
  /** Bytes. */
  readonly size: number
  /** SHA-256 of the content, lower-case hex. */
  readonly sha256: string
  /** Where devices fetch the file. */
  readonly url: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** `offered`: the device knows where the file is; `applied`: it has confirmed a push. */
export const ConfigurationState = Schema.Literals(["offered", "applied"])
export type ConfigurationState = typeof ConfigurationState.Type

/** What a device last heard of its configuration. */
export interface ConfigurationProgress {
  readonly deviceId: DeviceId
  readonly configurationId: string
  readonly state: ConfigurationState
  /** Unix milliseconds. */
  readonly at: number
}

/** There is no configuration to push. */
export class ConfigurationNotFound extends DomainError<ConfigurationNotFound>()(
  "ConfigurationNotFound",
  {
    /** The product or device. */
    of: Schema.String
  },
  ({ of }) => `There is no configuration for ${of}; store one first`
) {}
