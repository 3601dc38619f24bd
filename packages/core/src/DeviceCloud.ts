/**
 * The whole cloud: all services, wired once.
 */
import { type Crypto, Layer } from "effect"
import { Bindings } from "./binding/Bindings.ts"
import type { BindingStore } from "./binding/BindingStore.ts"
import { BleIdentities } from "./ble/BleIdentities.ts"
import { Commands } from "./command/Commands.ts"
import type { CommandStore } from "./command/CommandStore.ts"
import { Batches } from "./device/Batches.ts"
import { Devices } from "./device/Devices.ts"
import type { DeviceStore } from "./device/DeviceStore.ts"
import { Presence } from "./device/Presence.ts"
import type { PresenceStore } from "./device/PresenceStore.ts"
import { EventBus } from "./event/EventBus.ts"
import { Idempotency } from "./idempotency/Idempotency.ts"
import type { IdempotencyStore } from "./idempotency/IdempotencyStore.ts"
import { Identifiers } from "./Identifiers.ts"
import { MeshNetworks } from "./mesh/MeshNetworks.ts"
import type { MeshStore } from "./mesh/MeshStore.ts"
import { DeviceLink } from "./message/DeviceLink.ts"
import { Uplink } from "./message/Uplink.ts"
import { FirmwareFiles } from "./ota/FirmwareFiles.ts"
import { Firmwares } from "./ota/Firmwares.ts"
import { Upgrades } from "./ota/Upgrades.ts"
import type { OtaStore } from "./ota/OtaStore.ts"
import { Products } from "./product/Products.ts"
import type { ProductStore } from "./product/ProductStore.ts"
import { AccessKeys } from "./project/AccessKeys.ts"
import type { AccessKeyStore } from "./project/AccessKeyStore.ts"
import { Projects } from "./project/Projects.ts"
import type { ProjectStore } from "./project/ProjectStore.ts"
import { SceneActions } from "./scene/SceneActions.ts"
import * as SceneRunner from "./scene/SceneRunner.ts"
import { Scenes } from "./scene/Scenes.ts"
import type { SceneStore } from "./scene/SceneStore.ts"
import { SceneTriggers } from "./scene/SceneTriggers.ts"
import type { WebhookClient } from "./scene/WebhookClient.ts"
import { WebhookSigning } from "./scene/WebhookSigning.ts"
import { Shadows } from "./shadow/Shadows.ts"
import type { ShadowStore } from "./shadow/ShadowStore.ts"
import { DeviceAuthenticator } from "./signature/DeviceAuthenticator.ts"
import { Provisioning } from "./signature/Provisioning.ts"
import { SignatureGuard } from "./signature/SignatureGuard.ts"
import type { Mac } from "./signature/Mac.ts"
import { History } from "./telemetry/History.ts"
import type { TelemetryStore } from "./telemetry/TelemetryStore.ts"
import { GatewayMessages } from "./topology/GatewayMessages.ts"
import { SubDeviceSessions } from "./topology/SubDeviceSessions.ts"
import { Topologies } from "./topology/Topologies.ts"
import type { TopologyStore } from "./topology/TopologyStore.ts"
import { ThingModels } from "./thing-model/ThingModels.ts"
import type { ThingModelStore } from "./thing-model/ThingModelStore.ts"
import { Validators } from "./thing-model/Validators.ts"
import type { NodeBus } from "./node/NodeBus.ts"
import type { StoreError } from "./StoreError.ts"

/** What the cloud offers. */
export type DeviceCloud =
  | AccessKeys
  | Batches
  | Bindings
  | BleIdentities
  | Commands
  | DeviceAuthenticator
  | DeviceLink
  | Devices
  | EventBus
  | Firmwares
  | History
  | Idempotency
  | MeshNetworks
  | Products
  | Projects
  | Provisioning
  | Scenes
  | Shadows
  | SubDeviceSessions
  | ThingModels
  | Topologies
  | Upgrades
  | Uplink
  | WebhookSigning

/** What a storage adapter provides. */
export type Stores =
  | AccessKeyStore
  | BindingStore
  | CommandStore
  | DeviceStore
  | IdempotencyStore
  | MeshStore
  | NodeBus
  | OtaStore
  | PresenceStore
  | ProductStore
  | ProjectStore
  | SceneStore
  | ShadowStore
  | TelemetryStore
  | ThingModelStore
  | TopologyStore

/** What a platform adapter provides. */
export type Platform = Crypto.Crypto | Mac | WebhookClient

/**
 * All services of the cloud. Needs the stores of one storage adapter and a
 * platform. Provide it once: a second copy would not see the connections of
 * the first.
 */
export const layer: Layer.Layer<DeviceCloud, StoreError, Stores | Platform> = Layer.mergeAll(
  SubDeviceSessions.layer,
  Topologies.layer,
  Projects.layer,
  Batches.layer,
  Bindings.layer,
  BleIdentities.layer,
  History.layer,
  Idempotency.layer,
  Scenes.layer,
  SceneRunner.layer,
  Shadows.layer,
  ThingModels.layer
).pipe(
  Layer.provide(SceneActions.layer),
  Layer.provideMerge(Layer.mergeAll(Commands.layer, WebhookSigning.layer)),
  Layer.provideMerge(Uplink.layer),
  Layer.provide(GatewayMessages.layer),
  Layer.provideMerge(Layer.mergeAll(DeviceAuthenticator.layer, Provisioning.layer)),
  Layer.provideMerge(Layer.mergeAll(Upgrades.layer, MeshNetworks.layer)),
  Layer.provideMerge(Firmwares.layer),
  Layer.provide(FirmwareFiles.layer),
  Layer.provide(Validators.layer),
  Layer.provideMerge(Devices.layer),
  Layer.provide(SignatureGuard.layer),
  Layer.provideMerge(Layer.mergeAll(Products.layer, DeviceLink.layer)),
  Layer.provide(Presence.layer),
  Layer.provide(SceneTriggers.layer),
  Layer.provideMerge(Layer.mergeAll(AccessKeys.layer, EventBus.layer)),
  Layer.provide(Identifiers.layer)
)
