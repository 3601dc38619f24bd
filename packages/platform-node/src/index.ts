/**
 * What the core asks of its platform, on Node.js.
 */
import type { DeviceCloud } from "@device-cloud/core"
import { NodeCrypto } from "@effect/platform-node"
import { Layer } from "effect"
import * as NodeMac from "./NodeMac.ts"

export * as FileObjectStore from "./FileObjectStore.ts"
export * as MemoryObjectStore from "./MemoryObjectStore.ts"

/** Randomness, digests and message authentication codes. */
export const layer: Layer.Layer<DeviceCloud.Platform> = Layer.merge(NodeCrypto.layer, NodeMac.layer)
