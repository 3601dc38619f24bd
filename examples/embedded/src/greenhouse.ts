/**
 * The core inside another program: a greenhouse with sensors on its own bus. The
 * program is the transport: it attaches the sensors, submits their messages, and
 * reads their latest values.
 */
import {
  connectText,
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  DeviceCloud,
  type DeviceConnection,
  Devices,
  DeviceSessions,
  type Json,
  Mac,
  Products,
  Shadows,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Clock, Effect, Layer } from "effect"

/** The whole cloud: the core on the storage and the platform of your choice. */
export const Cloud = DeviceCloud.layer.pipe(
  Layer.provide(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer)
)

/** Authenticates a sensor, which signs like any other device, and attaches its connection. */
const plugIn = Effect.fn("plugIn")(function*(sensor: Device) {
  const { deviceName, deviceSecret, productKey } = sensor
  const clientId = `bus-${deviceName}`
  const signature = (yield* Mac).sign(
    "hmacsha256",
    deviceSecret,
    connectText({ clientId, deviceName, productKey })
  )
  const device = yield* (yield* DeviceAuthenticator).authenticate({
    productKey,
    deviceName,
    clientId,
    address: "127.0.0.1",
    signMethod: "hmacsha256",
    signature
  })
  const connection: DeviceConnection = {
    device,
    ip: "bus",
    backlog: () => undefined,
    deliver: (message) => Effect.logInfo(`to ${deviceName}`, message),
    close: (reason) => Effect.logInfo(`${deviceName} is unplugged: ${reason}`)
  }
  return yield* (yield* DeviceSessions).attach(connection)
})

/**
 * Reports two measurements of a sensor. Returns its latest value, and its status
 * while it is plugged in and after.
 */
export const greenhouse = Effect.gen(function*() {
  const products = yield* Products
  const devices = yield* Devices
  const sessions = yield* DeviceSessions
  const uplink = yield* Uplink
  const shadows = yield* Shadows

  const product = yield* products.create(defaultProjectId, {
    name: "Soil sensor",
    nodeType: "direct",
    networkType: "others",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  const sensor = yield* devices.create(defaultProjectId, product.productKey, { nickname: "Tomatoes" })

  const session = yield* plugIn(sensor)
  for (const moisture of [41, 43]) {
    yield* uplink.submit({
      device: session.connection.device,
      method: "thing.event.property.post",
      params: { moisture },
      receivedAt: yield* Clock.currentTimeMillis
    })
  }
  const { device, shadow } = yield* shadows.get(defaultProjectId, sensor.deviceId)
  yield* sessions.detach(session)
  const after = yield* devices.get(defaultProjectId, { deviceId: sensor.deviceId })

  const moisture: Json | undefined = shadow.reported["moisture"]?.value
  return { nickname: device.nickname, moisture, plugged: device.status, unplugged: after.device.status }
})
