/**
 * A device with a real MQTT client (the package `mqtt`).
 */
import { connectText, type Device, Mac, type SignMethod } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { Effect, Queue, type Scope } from "effect"
import mqtt from "mqtt"
import { Socket } from "node:net"
import { type Endpoint, MqttTestServer, type Transport } from "./MqttTestServer.ts"

/** Who a device is, and the secret by which it proves so. */
export type DeviceTriple = Pick<Device, "productKey" | "deviceName" | "deviceSecret">

/** A message as it is read: a test looks into whatever came. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Message = any

/** A PUBLISH from the cloud. */
export interface Received {
  /** Its topic. */
  readonly topic: string
  /** Its quality of service, 0 or 1. */
  readonly qos: number
  /** Its payload, decoded from JSON; of a block of a file, or of a raw message, `{ payload }` with the bytes. */
  readonly message: Message
}

/** A connected device. */
export interface MqttDevice<Triple extends DeviceTriple = DeviceTriple> {
  /** What it connected as. */
  readonly device: Triple
  /** The client beneath, for what the members below do not say. */
  readonly client: mqtt.MqttClient
  /** What the cloud sent and nobody has taken yet, in order. Nothing is ever dropped. */
  readonly received: Queue.Queue<Received>
  /** The next message from the cloud. Waits for one. */
  readonly take: Effect.Effect<Received>
  /** The next message on that topic. Waits for one; messages on other topics stay in `received`, in order. */
  readonly takeFrom: (topic: string) => Effect.Effect<Message>
  /** `/sys/{product key}/{device name}/{rest}` of this device. */
  readonly topic: (rest: string) => string
  /** Publishes any payload on any topic. Default QoS 0. Returns once it is acknowledged, or the connection has ended. */
  readonly publish: (topic: string, payload: string | Buffer, qos?: 0 | 1 | 2) => Effect.Effect<void>
  /** Publishes a message as JSON on a topic of this device. Default QoS 1. */
  readonly say: (rest: string, message: object, qos?: 0 | 1 | 2) => Effect.Effect<void>
  /**
   * Sends `{ id, version, params }` on a topic, with an id of its own, and
   * returns the message on the topic's `_reply` that has this id. Default QoS 1.
   * Dies if the reply has another id.
   */
  readonly request: (topic: string, params: unknown, qos?: 0 | 1 | 2) => Effect.Effect<Message>
  /** Reports properties. Default: id `"1"`, QoS 0. */
  readonly post: (
    params: unknown,
    options?: { readonly qos?: 0 | 1 | 2; readonly id?: string | number }
  ) => Effect.Effect<void>
  /** Subscribes, by default with QoS 1. Returns the QoS granted to each filter; 128: refused. */
  readonly subscribe: (filters: ReadonlyArray<string>, qos?: 0 | 1) => Effect.Effect<ReadonlyArray<number>>
  /** Waits for the end of the connection. */
  readonly closed: Effect.Effect<void>
  /** Sends DISCONNECT and ends the connection. */
  readonly end: Effect.Effect<void>
}

/** What a CONNECT says. */
export interface ConnectOptions {
  /** Default `hmacsha1`. */
  readonly signMethod?: SignMethod
  /** The client id without what follows it in `|…|`. Default `client-1`. */
  readonly clientId?: string
  /** What follows the client id. Default: the sign method and `authType=1`. */
  readonly extension?: string
  /** A timestamp to sign. Default: none. */
  readonly timestamp?: string
  /** Default: the signature with the device's secret. */
  readonly password?: string
  /** Default `{device name}&{product key}`. */
  readonly username?: string
  /** The one version of TLS to speak. Default: any. */
  readonly tlsVersion?: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"
  /** Passed on to the client, over everything else. */
  readonly options?: mqtt.IClientOptions
}

/** How a device connects to the broker of the test. */
export interface TestConnectOptions extends ConnectOptions {
  /** Default `tcp`. */
  readonly over?: Transport
}

/** The topic `/sys/{product key}/{device name}/{rest}`. */
export const topicOf = (
  { deviceName, productKey }: Pick<DeviceTriple, "productKey" | "deviceName">,
  rest: string
): string => `/sys/${productKey}/${deviceName}/${rest}`

const sign = (method: SignMethod, secret: string, text: string) =>
  Effect.runSync(Effect.map(Mac, (mac) => mac.sign(method, secret, text)).pipe(Effect.provide(PlatformNode.layer)))

/** The three fields of CONNECT. */
export const credentials = (device: DeviceTriple, options: ConnectOptions = {}) => {
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

const read = (topic: string, payload: Buffer): Message =>
  topic.endsWith("/thing/file/download_reply") || topic.includes("/thing/model/")
    ? { payload }
    : JSON.parse(payload.toString())

const open = (device: DeviceTriple, { ca, url }: Endpoint, options: ConnectOptions): mqtt.MqttClient => {
  const { tlsVersion } = options
  // Passed on to `tls.connect`.
  const tls = {
    ...ca === undefined ? {} : { ca },
    ...tlsVersion === undefined ? {} : { minVersion: tlsVersion, maxVersion: tlsVersion }
  }
  const client = mqtt.connect(url, {
    reconnectPeriod: 0,
    ...tls,
    ...credentials(device, options),
    ...options.options
  })
  // A PUBLISH that follows a PUBACK would wait for the peer's delayed TCP acknowledgement.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true)
  return client
}

/**
 * Tries to connect to any broker, and disconnects. Returns the return code of
 * the CONNACK (0: accepted), or -1 if the connection ended without one.
 */
export const connackFrom = (
  endpoint: Endpoint,
  device: DeviceTriple,
  options: ConnectOptions = {}
): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const client = open(device, endpoint, options)
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

/** {@link connackFrom} of the {@link MqttTestServer}. */
export const connack = (
  device: DeviceTriple,
  { over = "tcp", ...options }: TestConnectOptions = {}
): Effect.Effect<number, never, MqttTestServer> =>
  MqttTestServer.use((server) => connackFrom(server[over], device, options))

/** Connects a device to any broker; the connection ends with the scope. Fails if the broker refuses it. */
export const connectTo = Effect.fnUntraced(function*<Triple extends DeviceTriple>(
  endpoint: Endpoint,
  device: Triple,
  options: ConnectOptions = {}
): Effect.fn.Return<MqttDevice<Triple>, Error, Scope.Scope> {
  const received = yield* Queue.unbounded<Received>()
  const client = yield* Effect.acquireRelease(
    Effect.callback<mqtt.MqttClient, Error>((resume) => {
      const client = open(device, endpoint, options)
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

  const topic = (rest: string) => topicOf(device, rest)

  const publish: MqttDevice["publish"] = (to, payload, qos = 0) =>
    Effect.callback((resume) => {
      client.publish(to, payload, { qos }, () => resume(Effect.void))
    })

  const say: MqttDevice["say"] = (rest, message, qos = 1) => publish(topic(rest), JSON.stringify(message), qos)

  const takeFrom = Effect.fnUntraced(function*(wanted: string) {
    const others: Array<Received> = []
    while (true) {
      const next = yield* Queue.take(received)
      if (next.topic === wanted) {
        // What came after them stays behind them.
        const later = yield* Queue.clear(received)
        Queue.offerAllUnsafe(received, [...others, ...later])
        return next.message
      }
      others.push(next)
    }
  })

  let lastId = 0
  const request = Effect.fnUntraced(function*(to: string, params: unknown, qos: 0 | 1 | 2 = 1) {
    const id = String(++lastId)
    yield* publish(to, JSON.stringify({ id, version: "1.0", params }), qos)
    const reply = yield* takeFrom(`${to}_reply`)
    return reply.id === id
      ? reply
      : yield* Effect.die(new Error(`Expected the reply to ${id}, got that to ${reply.id}`))
  })

  return {
    device,
    client,
    received,
    take: Queue.take(received),
    takeFrom,
    topic,
    publish,
    say,
    request,
    post: (params, { id = "1", qos = 0 } = {}) =>
      say("thing/event/property/post", { id, version: "1.0", params, method: "thing.event.property.post" }, qos),
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
})

/** {@link connectTo} the {@link MqttTestServer}, over TCP unless the options say otherwise. */
export const connect = <Triple extends DeviceTriple>(
  device: Triple,
  { over = "tcp", ...options }: TestConnectOptions = {}
): Effect.Effect<MqttDevice<Triple>, Error, MqttTestServer | Scope.Scope> =>
  MqttTestServer.use((server) => connectTo(server[over], device, options))
