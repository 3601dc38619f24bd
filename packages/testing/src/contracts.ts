/**
 * The laws of the store ports as test suites for Vitest. Every storage adapter
 * runs all of them.
 */
import type { DeviceCloud } from "@device-cloud/core"
import type { Layer } from "effect"
import * as AccessKeyStoreContract from "./contracts/AccessKeyStoreContract.ts"
import * as DeviceStoreContract from "./contracts/DeviceStoreContract.ts"
import * as PresenceStoreContract from "./contracts/PresenceStoreContract.ts"
import * as ProductStoreContract from "./contracts/ProductStoreContract.ts"
import * as ProjectStoreContract from "./contracts/ProjectStoreContract.ts"
import * as ShadowStoreContract from "./contracts/ShadowStoreContract.ts"

export {
  AccessKeyStoreContract,
  DeviceStoreContract,
  PresenceStoreContract,
  ProductStoreContract,
  ProjectStoreContract,
  ShadowStoreContract
}

/** Runs the contract of every store. */
export const suites = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  AccessKeyStoreContract.suite(name, stores)
  DeviceStoreContract.suite(name, stores)
  PresenceStoreContract.suite(name, stores)
  ProductStoreContract.suite(name, stores)
  ProjectStoreContract.suite(name, stores)
  ShadowStoreContract.suite(name, stores)
}
