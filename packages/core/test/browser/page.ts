/**
 * A page that has the whole cloud in itself.
 */
import {
  defaultProjectId,
  DeviceCloud,
  Devices,
  DeviceSessions,
  ImageSignatures,
  Mac,
  Products,
  Randomness,
  Shadows,
  Uplink,
  WebhookClient,
  X509
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Clock, Effect, Layer } from "effect"

const unused = (): never => {
  throw new Error("This page does without it")
}

/** What this page needs of the browser: randomness. Its device proves nothing, and nobody signs firmware. */
const Platform = Layer.mergeAll(
  Layer.succeed(Randomness, { bytes: (size) => crypto.getRandomValues(new Uint8Array(size)) }),
  Layer.succeed(Mac, { sign: unused, sha256: unused, aes128Cbc: unused }),
  Layer.mock(ImageSignatures, { readKey: unused }),
  Layer.mock(WebhookClient, { refuse: unused }),
  Layer.mock(X509, { read: unused, isIssuedBy: unused, readRequest: unused, readRevocationList: unused })
)

const Cloud = DeviceCloud.layer.pipe(Layer.provide([StorageMemory.layer, Platform]))

/** Creates a product and a device, which reports, and returns what the cloud says of it. */
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
    ip: "page",
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
  const { device: after, shadow } = yield* (yield* Shadows).get(defaultProjectId, created.deviceId)
  return { code, status: after.status, power: shadow.reported["power"]?.value }
})

export const run = () => Effect.runPromise(program.pipe(Effect.provide(Cloud)))
