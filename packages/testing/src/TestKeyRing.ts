/**
 * A key ring for storages in tests.
 */
import type { KeyRing } from "@device-cloud/core"
import { NodeKeyRing } from "@device-cloud/platform-node"
import { Layer, Redacted } from "effect"

/**
 * Always the same master key, so that a database of a test can be opened again.
 * The key is public: never use it outside of tests.
 */
export const layer: Layer.Layer<KeyRing> = NodeKeyRing.layerKeys(
  Redacted.make(`${"A".repeat(43)}=`)
).pipe(Layer.orDie)
