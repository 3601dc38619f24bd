/**
 * An application without TypeScript: the cloud in memory, one device, one report.
 */
import { defaultProjectId, DeviceCloud, Devices, DeviceSessions, Products, Shadows, Uplink } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Clock, Effect, Layer } from "effect"
import assert from "node:assert/strict"

const Cloud = DeviceCloud.layer.pipe(Layer.provide([StorageMemory.layer, PlatformNode.layer]))

const program = Effect.gen(function*() {
  const { productKey, validateType } = yield* (yield* Products).create(defaultProjectId, {
    name: "Lamp",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  const created = yield* (yield* Devices).create(defaultProjectId, productKey, { nickname: "Desk" })
  const device = { ...created, validateType }
  yield* (yield* DeviceSessions).attach({
    device,
    ip: "none",
    backlog: () => undefined,
    deliver: () => Effect.void,
    close: () => Effect.void
  })
  const { code } = yield* (yield* Uplink).submit({
    device,
    method: "thing.event.property.post",
    params: { power: 1 },
    receivedAt: yield* Clock.currentTimeMillis
  })
  const { shadow } = yield* (yield* Shadows).get(defaultProjectId, created.deviceId)
  return { code, power: shadow.reported["power"]?.value }
})

assert.deepEqual(await Effect.runPromise(program.pipe(Effect.provide(Cloud))), { code: 200, power: 1 })
