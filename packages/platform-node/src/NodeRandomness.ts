/**
 * The randomness of the core, with `node:crypto`.
 */
import { Randomness } from "@device-cloud/core"
import { Layer } from "effect"
import { randomBytes } from "node:crypto"

export const layer: Layer.Layer<Randomness> = Layer.succeed(Randomness, { bytes: (size) => randomBytes(size) })
