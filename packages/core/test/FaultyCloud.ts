/**
 * The cloud in memory, whose stores fail as they are told.
 */
import { DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Faults } from "@device-cloud/testing"
import { Layer } from "effect"

export const cloudWith = (...faults: ReadonlyArray<Faults.Fault>) =>
  DeviceCloud.layer.pipe(
    Layer.provideMerge(Faults.layer({ seed: 1, faults })),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )
