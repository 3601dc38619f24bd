/**
 * The MQTT broker through which devices reach the cloud.
 */
import {
  ChurnMap,
  DeviceAuthenticator,
  type DeviceIdentity,
  DeviceReply,
  DeviceSessions,
  networkTime,
  Provisioning,
  SubDeviceSessions,
  Uplink,
  type UplinkExit
} from "@device-cloud/core"
import type { AedesPublishPacket, Client } from "aedes"
import { Cause, Clock, Context, Effect, Exit, Fiber, Layer, Metric, Schedule, Schema, type Scope } from "effect"
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createServer as createTlsServer } from "node:tls"
import { type AlinkRequest, decode, encodeReply, unreadable } from "./alink/AlinkMessage.ts"
import * as ConnectPacket from "./session/ConnectPacket.ts"
import { controlReading, DeviceBroker } from "./protocol/DeviceBroker.ts"
import type { ServerCertificate } from "./DevelopmentCertificate.ts"
import { MqttConnection } from "./session/MqttConnection.ts"
import * as PublishPacket from "./protocol/PublishPacket.ts"
import { methodPrefix, ownerOf, route } from "./topics/Topic.ts"

export interface Options {
  /** The address to listen on, for example `127.0.0.1`. */
  readonly host: string
  /** MQTT over TLS 1.2 and 1.3. Port 0: any free one. */
  readonly tls?: ServerCertificate & { readonly port: number }
  /** Plain MQTT, for development. Port 0: any free one. */
  readonly tcp?: { readonly port: number }
}

/** The broker cannot listen on its port. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Payload of a PUBLISH; a larger one ends the connection (decisions, section 7). */
const maxPayloadBytes = 256 * 1024
/** With the largest topic and headers. */
const maxPacketBytes = maxPayloadBytes + 65_535 + 16
/** Messages of one connection on their way to the store; it is read again when there are fewer. */
const maxHandling = 64
/** Messages on foreign topics that a connection may send in a minute; one more ends it. */
const maxForbiddenPerMinute = 9
const minuteMillis = 60_000
/** How long the store may take to say who a device is, milliseconds. */
const connectMillis = 8000
/** How long a device that has sent DISCONNECT may take to close the connection. */
const closingTime = "1 second"
/** How long a device that has registered may take to close the connection. */
const registeredTime = "10 seconds"
/** How long the end of the broker waits for messages on their way to the store. */
const drainTimeout = "4 seconds"

const refused = Metric.counter("device_cloud_mqtt_connects_refused_total", {
  description: "Refused CONNECT packets, by CONNACK return code",
  incremental: true
})
const dropped = Metric.counter("device_cloud_mqtt_publishes_dropped_total", {
  description: "PUBLISH packets without effect, by reason",
  incremental: true
})

const count = (metric: Metric.Counter<number>, attributes: Record<string, string>) =>
  Metric.update(Metric.withAttributes(metric, attributes), 1)

/** CONNACK return codes (MQTT 3.1.1, table 3.1). */
const connack = { identifierRejected: 2, unavailable: 3, badCredentials: 4, notAuthorized: 5 } as const

class ConnectRefused extends Schema.TaggedError<ConnectRefused>()("ConnectRefused", {
  returnCode: Schema.Literals([2, 3, 4, 5]),
  reason: Schema.String
}) {}

/** What is known of a connection before and after its device has proved who it is. */
interface Wire {
  /** From 1, in the order in which connections were opened. */
  readonly number: number
  readonly stream: Duplex
  readonly ip: string
  /** Nobody on the way can read it. */
  readonly isSecure: boolean
  /** The client id as the device sent it. */
  clientId: string
  connection: MqttConnection | undefined
  /** What a device that registers is told after the CONNACK. */
  registered: Buffer | undefined
  /** Messages that wait for room in the queue of the cloud. */
  waiting: number
  /** When foreign topics were used, Unix milliseconds. */
  forbidden: ReadonlyArray<number>
  /** Asks again whether there is something to read. */
  read: () => void
}

type Done = (error?: Error | null) => void

const make = Effect.fnUntraced(function*(options: Options): Effect.fn.Return<
  MqttServer["Service"],
  ListenError,
  DeviceAuthenticator | DeviceSessions | Provisioning | SubDeviceSessions | Uplink | Scope.Scope
> {
  const authenticator = yield* DeviceAuthenticator
  const provisioning = yield* Provisioning
  const link = yield* DeviceSessions
  const sessions = yield* SubDeviceSessions
  const uplink = yield* Uplink
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const wires = new WeakMap<Client, Wire>()
  /** All that are open, by number. */
  const open = new ChurnMap<number, Wire>()
  let lastWire = 0
  /** Those whose credentials are being checked, by number, and since when, Unix milliseconds. */
  const connecting = new ChurnMap<
    number,
    { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly since: number }
  >()
  /** Messages of all connections on their way to the store. */
  let underway = 0
  let stopping = false

  const detach = (wire: Wire) => {
    const session = wire.connection?.session
    wire.connection = undefined
    return session === undefined ? Effect.void : link.detach(session)
  }

  /** What a device that registers is told: its secret, or a token. */
  const register = Effect.fnUntraced(
    function*({ request, unlisted }: ConnectPacket.ConnectIntent & { readonly _tag: "Register" }, ip: string) {
      if (!unlisted) {
        const triple = yield* provisioning.registerNamed(request, ip)
        return PublishPacket.encode("/ext/register", JSON.stringify(triple), undefined)
      }
      const { token, ...rest } = yield* provisioning.registerUnlisted(request, ip)
      return PublishPacket.encode("/ext/regnwl", JSON.stringify({ ...rest, deviceToken: token }), undefined)
    }
  )

  const connect = Effect.fnUntraced(
    function*(client: Client, wire: Wire, username?: string, password?: Buffer) {
      if (stopping) return yield* new ConnectRefused({ returnCode: connack.unavailable, reason: "shutting down" })
      if (wire.clientId === "" && !client.clean) {
        return yield* new ConnectRefused({
          returnCode: connack.identifierRejected,
          reason: "empty client id without clean session"
        })
      }
      const intent = yield* Effect.fromResult(
        ConnectPacket.parse({ clientId: wire.clientId, username, password: password?.toString() }, wire.ip)
      )
      if (intent._tag === "Register") {
        if (!wire.isSecure) {
          return yield* new ConnectRefused({ returnCode: connack.notAuthorized, reason: "registration without TLS" })
        }
        wire.registered = yield* register(intent, wire.ip)
        return
      }
      const device = yield* intent._tag === "Token"
        ? authenticator.authenticateToken(intent.credentials)
        : authenticator.authenticate(intent.credentials)
      // The session belongs to the device, whatever client id it chose.
      client.id = `${device.productKey}&${device.deviceName}`
      const connection = new MqttConnection({ client, stream: wire.stream, device, ip: wire.ip })
      connection.session = yield* link.attach(connection)
      wire.connection = connection
      if (wire.stream.destroyed) yield* detach(wire)
    },
    Effect.catchTags({
      MalformedCredentials: ({ reason }) => new ConnectRefused({ returnCode: connack.badCredentials, reason }),
      DeviceNotFound: () => new ConnectRefused({ returnCode: connack.badCredentials, reason: "unknown device" }),
      WrongSignature: () => new ConnectRefused({ returnCode: connack.badCredentials, reason: "wrong signature" }),
      DeviceDisabled: () => new ConnectRefused({ returnCode: connack.notAuthorized, reason: "device disabled" }),
      TooManyWrongSignatures: () =>
        new ConnectRefused({ returnCode: connack.notAuthorized, reason: "too many wrong signatures" }),
      ProductNotFound: () => new ConnectRefused({ returnCode: connack.badCredentials, reason: "unknown product" }),
      InvalidInput: ({ issues: [{ message, path }] }) =>
        new ConnectRefused({ returnCode: connack.badCredentials, reason: `${path.join(".")}: ${message}` }),
      RegistrationOff: () => new ConnectRefused({ returnCode: connack.notAuthorized, reason: "registration is off" }),
      AlreadyActive: () => new ConnectRefused({ returnCode: connack.notAuthorized, reason: "device already active" }),
      DeviceNotConnectable: () => new ConnectRefused({ returnCode: connack.notAuthorized, reason: "device disabled" }),
      StoreError: () => new ConnectRefused({ returnCode: connack.unavailable, reason: "store unreachable" })
    })
  )

  const authenticate = (
    client: Client,
    username: string | undefined,
    password: Buffer | undefined,
    done: (error: Error & { returnCode: number } | null, success: boolean | null) => void
  ) => {
    const wire = wires.get(client)
    // The connection has ended meanwhile.
    if (wire === undefined) return done(null, true)
    const fiber = runFork(connect(client, wire, username, password))
    connecting.set(wire.number, { fiber, since: clock.currentTimeMillisUnsafe() })
    fiber.addObserver((exit) => {
      connecting.delete(wire.number)
      if (Exit.isSuccess(exit)) return done(null, true)
      const error = Cause.squash(exit.cause)
      const { reason, returnCode } = error instanceof ConnectRefused
        ? error
        : { reason: "internal error", returnCode: connack.unavailable }
      if (!(error instanceof ConnectRefused) && !Cause.hasInterruptsOnly(exit.cause)) {
        runFork(Effect.logError("A CONNECT failed", exit.cause))
      }
      runFork(count(refused, { return_code: String(returnCode) }))
      done(Object.assign(new Error(reason), { returnCode }), null)
    })
  }

  /** A topic that is not the device's own: without effect; many of them end the connection. */
  const forbid = (wire: Wire, done: Done) => {
    const now = clock.currentTimeMillisUnsafe()
    wire.forbidden = [...wire.forbidden.filter((at) => at > now - minuteMillis), now]
    runFork(count(dropped, { reason: "forbidden topic" }))
    done(wire.forbidden.length > maxForbiddenPerMinute ? new Error("too many forbidden topics") : null)
  }

  /** The device of the connection, or the sub-device that it carries, that all of a topic or filter belongs to. */
  const ownerAmong = ({ device, session }: MqttConnection, topic: string): DeviceIdentity | undefined => {
    const owner = ownerOf(topic)
    if (owner === undefined || session === undefined) return undefined
    return owner.productKey === device.productKey && owner.deviceName === device.deviceName
      ? device
      : sessions.carried(session, owner)
  }

  /** A topic of a device that the connection does not speak for: a gateway's sub-device has to log in first. */
  const refuse = (wire: Wire, { device }: MqttConnection, topic: string, done: Done) => {
    const owner = ownerOf(topic)
    if (owner === undefined) return forbid(wire, done)
    runFork(sessions.refuse(device, owner)).addObserver((exit) => {
      if (Exit.isFailure(exit) || !exit.value) return forbid(wire, done)
      runFork(count(dropped, { reason: "no session" }))
      done()
    })
  }

  const consume = (client: Client, packet: AedesPublishPacket, handled: Done, confirms?: number) => {
    const wire = wires.get(client)
    const connection = wire?.connection
    if (wire === undefined || connection === undefined) return handled(new Error("no device"))
    if (packet.payload.length > maxPayloadBytes) return handled(new Error("payload too large"))
    /** The end of a message without a reply. */
    const done: Done = confirms === undefined ? handled : (error) => {
      if (!error) connection.confirm(confirms)
      handled(error)
    }
    const ownWay = connection.routeOf(packet.topic)
    const speaker = ownWay === undefined ? ownerAmong(connection, packet.topic) : connection.device
    if (speaker === undefined) return refuse(wire, connection, packet.topic, done)
    const way = ownWay ?? route(packet.topic, methodPrefix(speaker), speaker)
    if (way === undefined) {
      runFork(Effect.andThen(
        Effect.logDebug("A message on an unsupported topic was dropped", packet.topic),
        count(dropped, { reason: "unsupported topic" })
      ))
      return done()
    }
    const maxQos = packet.qos === 0 && confirms === undefined ? 0 : 1
    const receivedAt = clock.currentTimeMillisUnsafe()
    const reply = (payload: string | Buffer) => {
      connection.send(way.replyTopic, payload, maxQos, undefined, confirms)
      handled()
    }
    const answer = (request: AlinkRequest, said: DeviceReply.DeviceReply) =>
      reply(encodeReply(way, request, said, receivedAt))
    const request = decode(way, packet.payload as Buffer)
    if ("code" in request) return way.replyTopic === "" ? done() : answer(unreadable, request)
    if (way.kind === "time") {
      return reply(JSON.stringify(networkTime(request.params, receivedAt, clock.currentTimeMillisUnsafe())))
    }
    if (way.kind === "session") {
      underway++
      const { device, ip, session } = connection
      runFork(sessions.answer(device, session, ip, way.method, request.params)).addObserver((exit) => {
        underway--
        if (request.wantsReply) answer(request, Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError)
        else done()
      })
      return
    }
    underway++
    const settle = (exit: UplinkExit) => {
      underway--
      // Neither stored nor refused: the device keeps the message and sends it again.
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return done(new Error("not stored"))
      if (Exit.isFailure(exit)) runFork(Effect.logError("A message could not be stored", exit.cause))
      if (request.wantsReply) answer(request, Exit.isSuccess(exit) ? exit.value : DeviceReply.systemError)
      else done()
    }
    const message = {
      device: speaker,
      method: way.method,
      params: request.params,
      receivedAt
    }
    const later = uplink.offer(message, settle)
    if (later === undefined) return
    wire.waiting++
    runFork(Effect.andThen(
      later,
      Effect.sync(() => {
        wire.waiting--
        wire.read()
      })
    ))
  }

  const broker = new DeviceBroker({
    // MQTT 3.1 allows 23 characters; the client ids of devices are longer.
    maxClientsIdLength: 65_535,
    // Packets that came in one piece with the CONNECT.
    queueLimit: 4096,
    preConnect: (client, packet, done) => {
      const wire = wires.get(client)!
      wire.clientId = packet.clientId
      // Sessions are found by client id: until the device is known, it gets one that nobody has.
      packet.clientId = `pending-${wire.number}`
      // Wills are not for the topics of devices.
      delete packet.will
      done(null, true)
    },
    authenticate,
    admits: (client, filter) => {
      const connection = wires.get(client)?.connection
      return connection !== undefined && ownerAmong(connection, filter) !== undefined &&
        connection.admitsSubscription(filter)
    },
    // Whatever a device finds to say ends its own connection at most.
    consume: (client, packet, done, confirms) => {
      try {
        consume(client, packet, done, confirms)
      } catch (defect) {
        runFork(Effect.logError("A message could not be handled", defect))
        done(new Error("not handled"))
      }
    }
  })
  yield* Effect.promise(() => broker.listen())
  const subscriptionsChanged = (_: unknown, client: Client) => wires.get(client)?.connection?.subscriptionsChanged()
  broker.on("subscribe", subscriptionsChanged)
  broker.on("unsubscribe", (filters, client) => wires.get(client)?.connection?.unsubscribed(filters))
  // In the turn that ends with this event, the CONNACK has been written.
  broker.on("client", (client) =>
    process.nextTick(() => {
      const wire = wires.get(client)
      wire?.connection?.opened()
      if (wire?.registered === undefined) return
      wire.stream.write(wire.registered)
      // The device has what it came for; it connects again as itself.
      runFork(Effect.andThen(Effect.sleep(registeredTime), Effect.sync(() => void wire.stream.destroy())))
    }))

  // One look a second at all of them costs less than a timer for each.
  yield* Effect.suspend(() => {
    const tooOld = clock.currentTimeMillisUnsafe() - connectMillis
    return Fiber.interruptAll(connecting.values().flatMap(({ fiber, since }) => since < tooOld ? [fiber] : []))
  }).pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.forkScoped)

  const acceptSocket = (isSecure: boolean) => (stream: Socket) => accept(stream, stream.remoteAddress ?? "", isSecure)

  const accept = (stream: Duplex, remoteAddress: string, isSecure: boolean) => {
    const client = broker.handle(stream)
    const wire: Wire = {
      number: ++lastWire,
      stream,
      ip: remoteAddress.replace(/^::ffff:/, ""),
      isSecure,
      clientId: "",
      connection: undefined,
      registered: undefined,
      waiting: 0,
      forbidden: [],
      read: controlReading(client, stream, {
        maxPacketBytes,
        mayRead: (handling) => handling < maxHandling && wire.waiting === 0 && !stopping && !stream.writableNeedDrain,
        onAcknowledge: (packetId) => wire.connection?.acknowledge(packetId),
        onDisconnect: () =>
          runFork(
            detach(wire).pipe(
              Effect.andThen(Effect.sleep(closingTime)),
              Effect.andThen(Effect.sync(() => stream.destroy()))
            )
          )
      })
    }
    wires.set(client, wire)
    open.set(wire.number, wire)
    stream.on("drain", wire.read)
    stream.once("close", () => {
      wires.delete(client)
      open.delete(wire.number)
      if (wire.connection !== undefined) runFork(detach(wire))
    })
  }

  /** Reads nothing more, waits for what is on its way to the store, ends all connections. */
  const drain = Effect.gen(function*() {
    stopping = true
    yield* Effect.sync(() => underway).pipe(
      Effect.repeat({ while: (count) => count > 0, schedule: Schedule.spaced("10 millis") }),
      Effect.timeoutOption(drainTimeout)
    )
    yield* Effect.forEach(
      open.values(),
      (wire) =>
        Effect.andThen(wire.connection?.close("shutdown") ?? Effect.sync(() => wire.stream.destroy()), detach(wire)),
      {
        concurrency: "unbounded",
        discard: true
      }
    )
    yield* Effect.callback<void>((resume) => broker.close(() => resume(Effect.void)))
  })
  yield* Effect.addFinalizer(() => drain)

  const mqtts = options.tls === undefined
    ? undefined
    : yield* listen(
      options.host,
      options.tls.port,
      () =>
        createTlsServer({ ...listening, cert: options.tls!.certificate, key: options.tls!.key, minVersion: "TLSv1.2" })
          .on("secureConnection", acceptSocket(true))
          // A failed handshake: the peer is gone already.
          .on("tlsClientError", () => {})
    )
  const mqtt = options.tcp === undefined
    ? undefined
    : yield* listen(options.host, options.tcp.port, () => createTcpServer(listening, acceptSocket(false)))

  const url = (scheme: string, port: number | undefined) =>
    port === undefined
      ? undefined
      : `${scheme}://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`

  return MqttServer.of({ mqtts: url("mqtts", mqtts), mqtt: url("mqtt", mqtt), accept })
})

/** Small packets leave at once. */
const listening = { noDelay: true } as const

/** Listens until the scope closes; answers the port. */
const listen = Effect.fnUntraced(function*(host: string, port: number, create: () => Server) {
  const failed = (cause: unknown) =>
    new ListenError({ message: `The MQTT broker cannot listen on ${host}, port ${port} (${String(cause)})`, cause })
  const server = yield* Effect.try({
    try: create,
    catch: (cause) => new ListenError({ message: `The TLS certificate cannot be used (${String(cause)})`, cause })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void, ListenError>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(failed(cause))))
      server.listen({ host, port }, () => resume(Effect.void))
    }),
    // New connections are refused at once; those that are open end with the broker.
    () => Effect.sync(() => void server.close())
  )
  return (server.address() as AddressInfo).port
})

/** Where the broker listens; undefined where it does not. */
export class MqttServer extends Context.Service<MqttServer, {
  /** For example `mqtts://127.0.0.1:8883`. */
  readonly mqtts: string | undefined
  /** For example `mqtt://127.0.0.1:1883`. */
  readonly mqtt: string | undefined
  /** Takes a connection from another listener. `isSecure`: nobody on the way can read it. */
  readonly accept: (stream: Duplex, remoteAddress: string, isSecure: boolean) => void
}>()("@device-cloud/mqtt/MqttServer") {
  /**
   * Listens while the layer lives. At its end no message is read any more, those
   * that were read are stored and acknowledged, then the connections end.
   */
  static readonly layer = (
    options: Options
  ): Layer.Layer<
    MqttServer,
    ListenError,
    DeviceAuthenticator | DeviceSessions | Provisioning | SubDeviceSessions | Uplink
  > => Layer.effect(MqttServer, make(options))
}
