/**
 * Every Device Cloud store in memory: for tests, development, and programs that
 * keep nothing.
 */
import { type DeviceCloud, StoreHealth } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import * as AccessKeyStore from "./AccessKeyStore.ts"
import * as BindingStore from "./BindingStore.ts"
import * as CommandStore from "./CommandStore.ts"
import * as DeviceStore from "./DeviceStore.ts"
import * as IdempotencyStore from "./IdempotencyStore.ts"
import * as MeshStore from "./MeshStore.ts"
import * as NodeBus from "./NodeBus.ts"
import * as OtaStore from "./OtaStore.ts"
import * as PresenceStore from "./PresenceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import * as SceneStore from "./SceneStore.ts"
import * as ShadowStore from "./ShadowStore.ts"
import * as HistoryStore from "./HistoryStore.ts"
import * as ThingModelStore from "./ThingModelStore.ts"
import * as TopologyStore from "./TopologyStore.ts"
import * as UplinkStore from "./UplinkStore.ts"
import { Tables } from "./Tables.ts"

/** An empty database of its own, wherever the layer is built. */
export const layer: Layer.Layer<DeviceCloud.Stores | StoreHealth> = Layer.mergeAll(
  AccessKeyStore.layer,
  BindingStore.layer,
  CommandStore.layer,
  DeviceStore.layer,
  IdempotencyStore.layer,
  MeshStore.layer,
  NodeBus.layer,
  OtaStore.layer,
  PresenceStore.layer,
  ProductStore.layer,
  ProjectStore.layer,
  SceneStore.layer,
  ShadowStore.layer,
  HistoryStore.layer,
  ThingModelStore.layer,
  TopologyStore.layer,
  UplinkStore.layer,
  Layer.succeed(StoreHealth, { check: Effect.void })
).pipe(Layer.provide(Tables.layer))
