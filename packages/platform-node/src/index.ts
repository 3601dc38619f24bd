/**
 * Implements what the core needs of its platform on Node.js, and the HTTP server.
 */
import type { DeviceCloud } from "@device-cloud/core"
import { NodeCrypto } from "@effect/platform-node"
import { Layer } from "effect"
import * as NodeMac from "./NodeMac.ts"
import * as NodeWebhookClient from "./NodeWebhookClient.ts"

export * as FileObjectStore from "./FileObjectStore.ts"
export * as HttpServer from "./HttpServer.ts"
export * as MemoryObjectStore from "./MemoryObjectStore.ts"

/** Provides randomness, digests, message authentication codes and webhooks. */
export const layer: Layer.Layer<DeviceCloud.Platform> = Layer.mergeAll(
  NodeCrypto.layer,
  NodeMac.layer,
  NodeWebhookClient.layer
)
