/**
 * A device with a real MQTT client.
 */
import { connectText, type Device, Mac, type SignMethod } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Effect, Queue } from "effect"
import mqtt from "mqtt"
import { Socket } from "node:net"

/** The device's triple. */
export type Triple = Pick<Device, "productKey" | "deviceName" | "deviceSecret">

export interface Received {
  readonly topic: string
  readonly qos: number
  /** Its JSON; of a block of a file, its `payload`. */
  readonly message: Record<string, unknown>
}

export interface TestDevice {
  readonly client: mqtt.MqttClient
  readonly received: Queue.Queue<Received>
  readonly topic: (rest: string) => string
  readonly post: (
    params: unknown,
    options?: { readonly qos?: 0 | 1 | 2; readonly id?: string | number }
  ) => Effect.Effect<void>
  readonly publish: (topic: string, payload: string | Buffer, qos?: 0 | 1 | 2) => Effect.Effect<void>
  /** The quality of service granted to each filter, 128: refused. */
  readonly subscribe: (filters: ReadonlyArray<string>, qos?: 0 | 1) => Effect.Effect<ReadonlyArray<number>>
  readonly closed: Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

export interface ConnectOptions {
  readonly url: string
  readonly ca?: string
  readonly signMethod?: SignMethod
  readonly clientId?: string
  /** What follows the client id; default: sign method and authType 1. */
  readonly extension?: string
  readonly timestamp?: string
  readonly password?: string
  readonly username?: string
  /** The one version to speak; default: any. */
  readonly tlsVersion?: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"
  readonly options?: mqtt.IClientOptions
}

const sign = (method: SignMethod, secret: string, text: string) =>
  Effect.runSync(Effect.map(Mac, (mac) => mac.sign(method, secret, text)).pipe(Effect.provide(PlatformNode.layer)))

/** The three fields of CONNECT. */
export const credentials = (device: Triple, options: Partial<ConnectOptions> = {}) => {
  const { deviceName, deviceSecret, productKey } = device
  const { clientId = "client-1", signMethod = "hmacsha1", timestamp } = options
  const extension = options.extension ?? `|signmethod=${signMethod},authType=1|`
  return {
    clientId: clientId + extension,
    username: options.username ?? `${deviceName}&${productKey}`,
    password: options.password ??
      sign(signMethod, deviceSecret, connectText({ clientId, deviceName, productKey, timestamp }))
  }
}

const read = (topic: string, payload: Buffer): Received["message"] =>
  topic.endsWith("/thing/file/download_reply") ? { payload } : JSON.parse(payload.toString())

const open = (device: Triple, options: ConnectOptions): mqtt.MqttClient => {
  const { ca, tlsVersion } = options
  // Passed on to `tls.connect`.
  const tls = {
    ...ca === undefined ? {} : { ca },
    ...tlsVersion === undefined ? {} : { minVersion: tlsVersion, maxVersion: tlsVersion }
  }
  const client = mqtt.connect(options.url, {
    reconnectPeriod: 0,
    ...tls,
    ...credentials(device, options),
    ...options.options
  })
  // A PUBLISH that follows a PUBACK would wait for the peer's delayed TCP acknowledgement.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true)
  return client
}

/** The return code of the CONNACK, 0: accepted; -1: the connection ended without one. */
export const connackOf = (device: Triple, options: ConnectOptions): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const client = open(device, options)
    client.once("error", () => {})
    client.stream.once("error", () => {})
    client.on("packetreceive", (packet) => {
      if (packet.cmd === "connack") {
        client.end(true)
        resume(Effect.succeed(packet.returnCode ?? packet.reasonCode ?? -1))
      }
    })
    client.once("close", () => resume(Effect.succeed(-1)))
    return Effect.sync(() => void client.end(true))
  })

/** Connects; the connection ends with the scope. */
export const connect = Effect.fnUntraced(function*(device: Triple, options: ConnectOptions) {
  const received = yield* Queue.unbounded<Received>()
  const client = yield* Effect.acquireRelease(
    Effect.callback<mqtt.MqttClient, Error>((resume) => {
      const client = open(device, options)
      client.on(
        "message",
        (topic, payload, { qos }) => Queue.offerUnsafe(received, { topic, qos, message: read(topic, payload) })
      )
      client.once("connect", () => resume(Effect.succeed(client)))
      client.once("error", (error) => resume(Effect.fail(error)))
    }),
    (client) => Effect.sync(() => void client.end(true))
  )
  client.on("error", () => {})
  const topic = (rest: string) => `/sys/${device.productKey}/${device.deviceName}/${rest}`

  const publish: TestDevice["publish"] = (to, payload, qos = 0) =>
    Effect.callback((resume) => {
      client.publish(to, payload, { qos }, () => resume(Effect.void))
    })

  const connected: TestDevice = {
    client,
    received,
    topic,
    publish,
    post: (params, { id = "1", qos = 0 } = {}) =>
      publish(
        topic("thing/event/property/post"),
        JSON.stringify({ id, version: "1.0", params, method: "thing.event.property.post" }),
        qos
      ),
    subscribe: (filters, qos = 1) =>
      Effect.callback((resume) => {
        client.subscribe([...filters], { qos }, (_, __, suback) => {
          const granted = (suback as unknown as { readonly granted: ReadonlyArray<number> } | undefined)?.granted
          resume(Effect.succeed(granted ?? []))
        })
      }),
    closed: Effect.callback((resume) => {
      if (!client.connected) return resume(Effect.void)
      client.once("close", () => resume(Effect.void))
    }),
    end: Effect.callback((resume) => {
      client.end(false, {}, () => resume(Effect.void))
    })
  }
  return connected
})
