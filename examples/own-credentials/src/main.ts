/**
 * Starts the cloud and connects a device with a token, then with a certificate.
 */
import { defaultProjectId, Devices, Products } from "@device-cloud/core"
import { DevelopmentCertificate, MqttServer } from "@device-cloud/mqtt"
import { NodeRuntime } from "@effect/platform-node"
import { Clock, Console, Effect, Redacted } from "effect"
import * as Cloud from "./Cloud.ts"
import { type Factory, makeFactory } from "./DeviceCertificate.ts"
import * as DeviceToken from "./DeviceToken.ts"
import * as MqttDevice from "./MqttDevice.ts"

const tokenKey = Redacted.make("a key of the application, which only it knows")

const connectTwice = Effect.fnUntraced(function*(authority: string, factory: Factory) {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Meter",
    nodeType: "direct",
    networkType: "cellular",
    validateType: "none",
    dataFormat: "json",
    authType: "secret"
  })
  const device = yield* (yield* Devices).create(defaultProjectId, productKey, {})
  const broker = { url: (yield* MqttServer).mqtts!, authority }

  const hour = 3_600_000
  const token = yield* DeviceToken.issue(tokenKey, device, (yield* Clock.currentTimeMillis) + hour)
  const withToken = yield* MqttDevice.connect(broker, { clientId: "meter", username: "token", password: token })
  yield* Console.log(`CONNACK for the token: ${withToken}`)

  const files = yield* factory.issue(`${productKey}/${device.deviceName}`)
  const withCertificate = yield* MqttDevice.connect(broker, { clientId: "meter", ...files })
  yield* Console.log(`CONNACK for the certificate: ${withCertificate}`)
})

const main = Effect.gen(function*() {
  const certificate = yield* DevelopmentCertificate.loadOrMake(".device-cloud/own-credentials")
  const factory = yield* makeFactory("Factory")
  const cloud = Cloud.layer({ tokenKey, certificate, factoryAuthority: factory.authority })
  yield* connectTwice(certificate.authority, factory).pipe(Effect.provide(cloud))
})

NodeRuntime.runMain(main)
