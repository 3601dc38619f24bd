/**
 * Implements what the core needs of its platform on Node.js, and the HTTP server.
 */
import type { DeviceCloud } from "@device-cloud/core"
import { Layer } from "effect"
import * as NodeImageSignatures from "./NodeImageSignatures.ts"
import * as NodeMac from "./NodeMac.ts"
import * as NodeRandomness from "./NodeRandomness.ts"
import * as NodeWebhookClient from "./NodeWebhookClient.ts"
import * as NodeX509 from "./NodeX509.ts"

export * as FileObjectStore from "./FileObjectStore.ts"
export * as HttpServer from "./HttpServer.ts"
export * as IdleCollection from "./IdleCollection.ts"
export * as MemoryObjectStore from "./MemoryObjectStore.ts"
export * as NodeKeyRing from "./NodeKeyRing.ts"
export * as SystemClock from "./SystemClock.ts"

/** Provides randomness, digests, signatures of firmware, message authentication codes, certificates and webhooks. */
export const layer: Layer.Layer<DeviceCloud.Platform> = Layer.mergeAll(
  NodeImageSignatures.layer,
  NodeMac.layer,
  NodeRandomness.layer,
  NodeWebhookClient.layer,
  NodeX509.layer
)
