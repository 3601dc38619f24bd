import type { DeviceCloud } from "@device-cloud/core"
import * as Contracts from "@device-cloud/testing/contracts"
import { it } from "@effect/vitest"
import type { Layer } from "effect"
import { sqlite } from "../../../vitest.storages.ts"

/** Stores that are not written yet. */
const missing = new Set([
  "BulkCommandStore",
  "CommandStore",
  "DeviceGroupStore",
  "DeviceStore",
  "ExecutionStore",
  "FeedStore",
  "JobStore",
  "ObjectStore",
  "OtaStore",
  "PresenceStore",
  "SceneStore",
  "ShadowStore"
])

const stores = sqlite as unknown as Layer.Layer<DeviceCloud.Stores, unknown>

for (const [name, contract] of Object.entries(Contracts)) {
  if (!name.endsWith("Contract") || name === "NodeBusContract") continue
  const { suite } = contract as {
    readonly suite: (name: string, stores: Layer.Layer<DeviceCloud.Stores, unknown>) => void
  }
  const store = name.replace(/Contract$/, "")
  if (missing.has(store)) it.todo(`${store}: SQLite`)
  else suite("SQLite", stores)
}
