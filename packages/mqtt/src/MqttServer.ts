/**
 * The MQTT broker through which devices reach the cloud.
 */
import {
  type DeviceAuthenticator,
  DeviceMethods,
  type DeviceSessions,
  type Provisioning,
  type SubDeviceSessions,
  type Uplink
} from "@device-cloud/core"
import type { Client } from "aedes"
import { Context, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net"
import type { Duplex } from "node:stream"
import { createServer as createTlsServer } from "node:tls"
import * as MessageHandling from "./alink/MessageHandling.ts"
import type { ServerCertificate } from "./DevelopmentCertificate.ts"
import { DeviceBroker } from "./protocol/DeviceBroker.ts"
import { readPackets } from "./protocol/PacketReading.ts"
import * as Connecting from "./session/Connecting.ts"
import { Connections } from "./session/ConnectionState.ts"
import { type Peer, peerOf } from "./session/Peer.ts"
import * as TopicAccess from "./session/TopicAccess.ts"
import { makeRouter } from "./topics/TopicRouter.ts"

export interface Options {
  /** The address to listen on, for example `127.0.0.1`. */
  readonly host: string
  /** MQTT over TLS 1.2 and 1.3. */
  readonly tls?: TlsOptions
  /** Plain MQTT, for development. */
  readonly tcp?: {
    /** 0: any free port. */
    readonly port: number
  }
}

export interface TlsOptions extends ServerCertificate {
  /** 0: any free port. */
  readonly port: number
  /**
   * Certificates of the authorities of client certificates, as PEM. The broker
   * then asks every client for a certificate, and hands those that it has verified
   * to the provers of `DeviceCredentials`. A client without a certificate, or with
   * one of another authority, needs another proof.
   */
  readonly clientAuthorities?: string
}

/** The broker cannot listen on a port, or cannot use its certificate. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  /** A sentence that names the port or the certificate. */
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** The running broker. */
export class MqttServer extends Context.Service<MqttServer, {
  /** The URL of MQTT over TLS, for example `mqtts://127.0.0.1:8883`; undefined without the option `tls`. */
  readonly mqtts: string | undefined
  /** The URL of plain MQTT, for example `mqtt://127.0.0.1:1883`; undefined without the option `tcp`. */
  readonly mqtt: string | undefined
  /** Takes a connection from another listener; its first bytes must be an MQTT CONNECT. */
  readonly accept: (stream: Duplex, peer: Peer) => void
}>()("@device-cloud/mqtt/MqttServer") {
  /**
   * Listens while the layer lives. At its end the broker reads nothing more,
   * waits up to four seconds until the messages that it has read are stored and
   * acknowledged, and closes all connections.
   */
  static readonly layer = (options: Options): Layer.Layer<MqttServer, ListenError, Requirements> =>
    Layer.effect(MqttServer, make(options))
}

type Requirements = DeviceAuthenticator | DeviceMethods | DeviceSessions | Provisioning | SubDeviceSessions | Uplink

/** Bytes in one packet: the payload, the largest topic, and the headers. */
const maxPacketBytes = MessageHandling.maxPayloadBytes + 65_535 + 16
/** Messages of one connection on their way to the store. While there are more, the connection is not read. */
const maxHandling = 64
/** How long a device that has sent DISCONNECT may take to close the connection. */
const closingTime = "1 second"
/** How long a device that has registered may take to close the connection. */
const registeredTime = "10 seconds"
/** How long the end of the broker waits for messages on their way to the store. */
const drainTimeout = "4 seconds"

const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<MqttServer["Service"], ListenError, Requirements | Scope.Scope> {
  const connections = new Connections()
  const methods = yield* DeviceMethods
  const route = makeRouter((method) => methods.find(method)?.form)
  const connecting = yield* Connecting.make(connections, route)
  const access = yield* TopicAccess.make
  const messages = yield* MessageHandling.make(access, route)
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const broker = new DeviceBroker({
    // MQTT 3.1 allows 23 characters; the client ids of devices are longer.
    maxClientsIdLength: 65_535,
    // Packets that arrive together with the CONNECT.
    queueLimit: 4096,
    preConnect: (client, packet, done) => {
      const state = connections.of(client)!
      state.clientId = packet.clientId
      // Aedes finds sessions by client id: until the device is known, it has one of its own.
      packet.clientId = `pending-${state.number}`
      // A will has no place on the topics of devices.
      delete packet.will
      done(null, true)
    },
    authenticate: connecting.authenticate,
    admits: (client, filter) => {
      const connection = connections.of(client)?.connection
      return connection !== undefined && access.speakerOf(connection, filter) !== undefined &&
        connection.subscriptions.admit(filter)
    },
    consume: (client, packet, done, confirms) => {
      const state = connections.of(client)
      if (state === undefined) done(new Error("no device"))
      else messages.consume(state, packet, done, confirms)
    }
  })
  yield* Effect.promise(() => broker.listen())

  const subscriptionsOf = (client: Client) => connections.of(client)?.connection?.subscriptions
  broker.on("subscribe", (_, client) => subscriptionsOf(client)?.added())
  broker.on("unsubscribe", (filters, client) => subscriptionsOf(client)?.removed(filters))
  // Aedes writes the CONNACK in the turn of this event.
  broker.on("client", (client) =>
    process.nextTick(() => {
      const state = connections.of(client)
      state?.connection?.opened()
      if (state?.registered === undefined) return
      state.stream.write(state.registered)
      // The device connects again as itself.
      runFork(Effect.andThen(Effect.sleep(registeredTime), Effect.sync(() => void state.stream.destroy())))
    }))

  const accept = (stream: Duplex, peer: Peer) => {
    const client = broker.handle(stream)
    const state = connections.add(client, stream, peer)
    state.read = readPackets(client, stream, {
      maxPacketBytes,
      mayRead: (handling) =>
        handling < maxHandling && state.waiting === 0 && !connections.isStopping && !stream.writableNeedDrain,
      onAcknowledge: (packetId) => state.connection?.acknowledge(packetId),
      onDisconnect: () =>
        runFork(
          connecting.detach(state).pipe(
            Effect.andThen(Effect.sleep(closingTime)),
            Effect.andThen(Effect.sync(() => stream.destroy()))
          )
        )
    })
    stream.on("drain", state.read)
    stream.once("close", () => {
      connections.remove(client)
      access.forget(state)
      if (state.connection !== undefined) runFork(connecting.detach(state))
    })
  }

  /** Reads nothing more, waits for messages on their way to the store, and closes all connections. */
  const drain = Effect.gen(function*() {
    connections.isStopping = true
    yield* Effect.sync(messages.underway).pipe(
      Effect.repeat({ while: (count) => count > 0, schedule: Schedule.spaced("10 millis") }),
      Effect.timeoutOption(drainTimeout)
    )
    yield* Effect.forEach(
      connections.all(),
      (state) =>
        Effect.andThen(
          state.connection?.close("shutdown") ?? Effect.sync(() => state.stream.destroy()),
          connecting.detach(state)
        ),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.callback<void>((resume) => broker.close(() => resume(Effect.void)))
  })
  yield* Effect.addFinalizer(() => drain)

  const { host, tcp, tls } = options
  const mqtts = tls && (yield* listen(host, tls.port, () =>
    createTlsServer({ ...listening, ...tlsOptions(tls) })
      .on("secureConnection", (socket) => accept(socket, peerOf(socket)))
      // The handshake has failed: the peer is gone already.
      .on("tlsClientError", () => {})))
  const mqtt = tcp &&
    (yield* listen(host, tcp.port, () => createTcpServer(listening, (socket) => accept(socket, peerOf(socket)))))

  const url = (scheme: string, port: number | undefined) =>
    port === undefined ? undefined : `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`

  return MqttServer.of({ mqtts: url("mqtts", mqtts), mqtt: url("mqtt", mqtt), accept })
})

/** Small packets leave at once. */
const listening = { noDelay: true } as const

const tlsOptions = ({ certificate, clientAuthorities, key }: TlsOptions) => ({
  cert: certificate,
  key,
  minVersion: "TLSv1.2" as const,
  ...clientAuthorities === undefined
    ? {}
    : { ca: clientAuthorities, requestCert: true, rejectUnauthorized: false }
})

/** Listens until the scope closes; returns the port. */
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
    // Refuses new connections at once; open connections end with the broker.
    () => Effect.sync(() => void server.close())
  )
  return (server.address() as AddressInfo).port
})
