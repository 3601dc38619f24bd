/**
 * The cloud whose API is mounted.
 */
import * as PlatformNode from "@device-cloud/platform-node"
import { type CloudWithObjects, startCloud } from "@device-cloud/promise"
import * as StorageMemory from "@device-cloud/storage-memory"

/** The API as a function from request to response. */
export type ApiHandler = Awaited<ReturnType<CloudWithObjects["fetchHandler"]>>

/** Starts a cloud in memory. */
export const start = (): Promise<CloudWithObjects> =>
  startCloud({
    storage: StorageMemory.layer,
    platform: PlatformNode.layer,
    objects: PlatformNode.MemoryObjectStore.layer
  })
