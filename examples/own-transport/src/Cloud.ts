/**
 * A cloud whose devices speak JSON lines and nothing else.
 */
import { DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Layer } from "effect"
import { LineTransport } from "./LineTransport.ts"

export const layer = LineTransport.layer({ port: 0 }).pipe(
  Layer.provideMerge(DeviceCloud.layer),
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer)
)
