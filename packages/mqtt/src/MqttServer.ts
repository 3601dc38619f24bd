/**
 * The MQTT broker through which devices reach the cloud.
 */
import { isBroadcastFilter, makeRouter } from "@device-cloud/alink"
import {
  type Broadcasts,
  type ConnectRefusals,
  type DeviceAuthenticator,
  DeviceMethods,
  DeviceSessions,
  KnownAddresses,
  Newcomers,
  printable,
  type Provisioning,
  type SubDeviceSessions,
  type TraceRecorder,
  TrustedProxies,
  Turns,
  type Uplink,
  type UplinkRates,
  type UplinkTrace
} from "@device-cloud/core"
import { Clock, Context, Duration, Effect, Fiber, Layer, Metric, Schedule, type Scope } from "effect"
import type { Duplex } from "node:stream"
import * as MessageHandling from "./session/MessageHandling.ts"
import { complete, type Limits } from "./Limits.ts"
import { type Listener, type ListenError, listenTcp, listenTls, type Reception, type TlsOptions } from "./Listening.ts"
import { clientOf } from "./protocol/AedesInternals.ts"
import { DeviceBroker, LimitExceeded } from "./protocol/DeviceBroker.ts"
import { KeptSessions } from "./protocol/KeptSessions.ts"
import { readPackets } from "./protocol/PacketReading.ts"
import { TurnWrites } from "./protocol/TurnWrites.ts"
import { type Arrival, Arrivals, type ArrivalSocket, maxArrivalBytes, type TurnedAway } from "./session/Arrivals.ts"
import * as BroadcastDelivery from "./session/BroadcastDelivery.ts"
import * as Connecting from "./session/Connecting.ts"
import { Connections, type ConnectionState } from "./session/ConnectionState.ts"
import type { Peer } from "./session/Peer.ts"
import { makeWatch } from "./session/Readiness.ts"
import { shadowOwnersOf } from "./session/Subscriptions.ts"
import { UnsentOutput } from "./session/UnsentOutput.ts"
import * as TopicAccess from "./session/TopicAccess.ts"

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
  /**
   * Whether all connections over TLS and TCP come through proxies that send a header
   * of the PROXY protocol, version 1 or 2. The header says where the client is, and
   * whether it has used TLS. The proxies are `TrustedProxies` of the core; others are
   * refused. Default: false.
   */
  readonly proxyProtocol?: boolean
  /** What the broker holds of its clients, at most. Default of each: see {@link Limits}. */
  readonly limits?: Partial<Limits>
}

/** The running broker. */
export class MqttServer extends Context.Service<MqttServer, {
  /** The URL of MQTT over TLS, for example `mqtts://127.0.0.1:8883`; undefined without the option `tls`. */
  readonly mqtts: string | undefined
  /** The URL of plain MQTT, for example `mqtt://127.0.0.1:1883`; undefined without the option `tcp`. */
  readonly mqtt: string | undefined
  /**
   * Counts a connection that another listener has from this address, and lets it
   * in; returns undefined if there is no room. The broker destroys the socket when
   * it needs its room for others.
   */
  readonly admit: (address: string, socket: ArrivalSocket) => Admission | undefined
  /**
   * Takes no more connections, and ends those that are open, spread over `time`: each
   * when what it has sent is stored and acknowledged. Returns when all have ended.
   * A server that stops while others take over calls it before its layer closes.
   */
  readonly drain: (time: Duration.Input) => Effect.Effect<void>
}>()("@device-cloud/mqtt/MqttServer") {
  /**
   * Listens while the layer lives. At its end the broker reads nothing more,
   * waits up to four seconds until the messages that it has read are stored and
   * acknowledged, and closes all connections.
   */
  static readonly layer = (options: Options): Layer.Layer<MqttServer, ListenError, Requirements> =>
    Layer.effect(MqttServer, make(options))
}

/** A connection that was let in. */
export interface Admission {
  /** Calls `run` when it is the turn of the address: at once if the thread has time. */
  readonly inTurn: (run: () => void) => void
  /** Takes the connection; its first bytes must be an MQTT CONNECT. */
  readonly accept: (stream: Duplex, peer: Peer) => void
  /** The listener itself holds so many bytes that the stream does not show. Without effect once the device is authenticated. */
  readonly holds: (bytes: number) => void
  /** The connection has ended. */
  readonly left: () => void
  /** Whether the device has been authenticated. */
  readonly isAuthenticated: () => boolean
}

type Requirements =
  | Broadcasts
  | DeviceAuthenticator
  | DeviceMethods
  | DeviceSessions
  | ConnectRefusals
  | KnownAddresses
  | Provisioning
  | SubDeviceSessions
  | TraceRecorder
  | Uplink
  | UplinkRates
  | UplinkTrace

/** Bytes in one packet: the payload, the largest topic, and the headers. */
const maxPacketBytes = MessageHandling.maxPayloadBytes + 65_535 + 16
/** Messages of one connection on their way to the store. While there are more, the connection is not read. */
const maxHandling = 64
/** How long a device that has sent DISCONNECT may take to close the connection. */
const closingTime = "1 second"
/** How long a device that has registered may take to close the connection. */
const registeredTime = "10 seconds"
/** Stands for the quality of service of a subscription that was refused. */
const refused = 128
/** How often sessions that were left too long ago end. */
const expiryInterval = "1 minute"
/** Milliseconds that strangers wait for others to come, at most, before they have another turn: ten turns long. */
const strangersPatience = 20
/** Connections that are drained end in slices, at least so many milliseconds apart. */
const drainSlice = 100
/** How long the end of a connection, or of the broker, waits for messages on their way to the store, and for the status. */
const drainTimeout = "3 seconds"

const turnedAway = Metric.counter("device_cloud_mqtt_arrivals_turned_away_total", {
  description: "Unauthenticated connections that were refused or closed for want of room, by reason",
  incremental: true
})

const unread = Metric.counter("device_cloud_mqtt_unread_connections_ended_total", {
  description: "Connections that ended because their devices did not read",
  incremental: true
})

/** Programs in JavaScript may leave out what a port needs: Node.js would take any port, and a listener that lets nobody in. */
const checkPlaces = ({ host, tcp, tls }: Options): void => {
  if (typeof host !== "string") throw new TypeError(`host: expected an address such as 127.0.0.1, not ${String(host)}`)
  for (const [name, place] of Object.entries({ tcp, tls })) {
    if (place !== undefined && place.port === undefined) throw new TypeError(`${name}.port: expected a number`)
  }
  for (const name of ["certificate", "key"] as const) {
    if (tls !== undefined && !tls[name]) throw new TypeError(`tls.${name}: expected a text in the form of PEM`)
  }
}

const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<MqttServer["Service"], ListenError, Requirements | Scope.Scope> {
  checkPlaces(options)
  const connections = new Connections()
  const methods = yield* DeviceMethods
  const route = makeRouter((method) => methods.find(method)?.form)
  const access = yield* TopicAccess.make
  const messages = yield* MessageHandling.make(access, route)
  const broadcasts = yield* BroadcastDelivery.make
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const clock = yield* Clock.Clock
  const limits = complete(options.limits)
  const timing = { now: () => performance.now(), afterOthers: setImmediate }
  // Projects take turns, and in a project devices.
  const turns = new Turns(timing)
  const newcomers = new Newcomers({
    ...timing,
    patience: strangersPatience,
    isCrowded: () => arrivals.isCrowded
  })
  // Those of addresses from which nobody was authenticated lately.
  const strangers = new Turns({ ...timing, afterOthers: newcomers.afterThem })
  // Who comes does not wait behind large outputs, one in each round of the event loop.
  const writes = new TurnWrites(new Turns({ ...timing, afterOthers: newcomers.afterThem }))
  const countTurnedAway = (reason: TurnedAway) =>
    void runFork(Metric.update(Metric.withAttributes(turnedAway, { reason }), 1))
  const arrivals = new Arrivals(
    limits,
    () => clock.currentTimeMillisUnsafe(),
    yield* KnownAddresses,
    countTurnedAway
  )

  const unsent = new UnsentOutput(
    { bytes: limits.unsentBytes, time: Duration.toMillis(limits.unsentTime) },
    () => clock.currentTimeMillisUnsafe(),
    () => void runFork(Metric.update(unread, 1))
  )
  yield* Effect.sync(() => unsent.endStale()).pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.forkScoped)
  /** Works for a client that is not authenticated yet: at once if there is time. Strangers wait while others come. */
  const inTurn = ({ address, isKnown }: Arrival, run: () => void): void => {
    const ofKind = isKnown ? turns : strangers
    if (ofKind.mayRun()) run()
    else ofKind.wait(address, "", run)
  }

  const sessions = yield* DeviceSessions
  const kept = new KeptSessions(
    { expiry: Duration.toMillis(limits.sessionExpiry), bytes: limits.sessionBytes },
    () => clock.currentTimeMillisUnsafe(),
    // Not of the session of the device that counts: the next connection may be about to be let in.
    (clientId) => {
      const client = clientOf(broker, clientId)
      const connection = client && connections.of(client)?.connection
      return { projectId: connection?.device.projectId ?? "", session: connection?.session ?? { epoch: 0 } }
    }
  )
  yield* Effect.sync(() => kept.endExpired()).pipe(
    Effect.repeat(Schedule.spaced(expiryInterval)),
    Effect.forkScoped
  )
  // Also when the device is disabled or deleted through another node.
  yield* sessions.listen({ cutOff: (deviceId) => kept.end(deviceId) })

  const connecting = yield* Connecting.make(connections, {
    arrivals,
    kept,
    unsent,
    writes,
    readiness: yield* makeWatch,
    maxUnsentBytes: limits.unsentBytesOfConnection,
    route
  })

  const broker = new DeviceBroker({
    sessions: kept,
    // MQTT 3.1 allows 23 characters; the client ids of devices are longer.
    maxClientsIdLength: 65_535,
    connectTimeout: Duration.toMillis(limits.connectTime),
    // Packets that arrive together with the CONNECT.
    queueLimit: 4096,
    preConnect: (client, packet, done) => {
      const state = connections.of(client)!
      arrivals.judged(state.arrival)
      state.clientId = packet.clientId
      // Aedes finds sessions by client id: until the device is known, it has one of its own.
      packet.clientId = `pending-${state.number}`
      // A will has no place on the topics of devices.
      delete packet.will
      done(null, true)
    },
    authenticate: (client, ...args) => {
      const authenticate = () => connecting.authenticate(client, ...args)
      const state = connections.of(client)
      // A connection that has ended meanwhile takes no turn.
      if (state === undefined) authenticate()
      else inTurn(state.arrival, authenticate)
    },
    admits: (client, filter) => {
      const state = connections.of(client)
      const connection = state?.connection
      if (state === undefined || connection === undefined) return false
      const isBroadcast = isBroadcastFilter(filter, connection.device)
      // Before the CONNACK a session brings back what it was granted; sub-devices log in later.
      if (client.connected && !isBroadcast && access.speakerOf(connection, filter) === undefined) return false
      const isAdmitted = connection.subscriptions.admit(filter)
      if (isAdmitted && isBroadcast) broadcasts.add(state, connection.device.productKey)
      return isAdmitted
    },
    consume: (client, packet, done, confirms) => {
      const state = connections.of(client)
      if (state === undefined) done(new Error("no device"))
      else messages.consume(state, packet, done, confirms)
    }
  })
  yield* Effect.promise(() => broker.listen())

  broker.on("clientError", (client, error) => {
    connections.of(client)?.connection?.ends(printable(error.message))
    const device = connections.of(client)?.connection?.device
    if (device === undefined || !(error instanceof LimitExceeded)) return
    runFork(Effect.logWarning(`The connection of a device ends: ${error.message}`, { deviceId: device.deviceId }))
  })

  broker.on("subscribe", (wanted, client) => {
    const connection = connections.of(client)?.connection
    const added = wanted.flatMap(({ qos, topic }) => (qos as number) < refused ? [topic] : [])
    connection?.subscriptions.added(added)
    connection?.readiness.heard(clock.currentTimeMillisUnsafe())
    for (const owner of shadowOwnersOf(added)) connection?.readiness.subscribesShadow(owner)
  })
  broker.on("unsubscribe", (filters, client) => {
    const connection = connections.of(client)?.connection
    connection?.subscriptions.removed(filters)
    for (const owner of shadowOwnersOf(filters)) connection?.readiness.unsubscribesShadow(owner)
  })
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

  const accept = (stream: Duplex, peer: Peer, arrival: Arrival) => {
    const client = broker.handle(stream)
    const state = connections.add(client, stream, peer, arrival)
    const reading = readPackets(client, stream, {
      maxPacketBytes,
      maxArrivalBytes,
      onArriving: (bytes) => arrivals.holds(arrival, bytes),
      mayRead: () => state.waiting === 0 && !state.isEnding && !connections.isStopping && !stream.writableNeedDrain,
      maxHandling,
      turns,
      owner: () => {
        const device = state.connection?.device
        return device === undefined ? ["", ""] : [device.projectId, device.deviceId]
      },
      onAcknowledge: (packetId) => state.connection?.acknowledge(packetId),
      onDisconnect: () => {
        state.connection?.ends("the device has sent DISCONNECT")
        runFork(
          connecting.detach(state).pipe(
            Effect.andThen(Effect.sleep(closingTime)),
            Effect.andThen(Effect.sync(() => stream.destroy()))
          )
        )
      }
    })
    state.read = reading.read
    state.underway = reading.underway
    stream.on("drain", () => {
      state.drained()
      state.read()
    })
    stream.once("close", () => {
      connections.remove(client)
      // Before what waits for the device goes on: it must find that the session has ended.
      if (state.connection !== undefined) runFork(connecting.detach(state))
      state.drained()
      access.forget(state)
      broadcasts.remove(state)
    })
  }

  const admit: MqttServer["Service"]["admit"] = (address, socket) => {
    newcomers.came()
    const arrival = isLeaving ? undefined : arrivals.admit(address, socket)
    return arrival && {
      inTurn: (run) => inTurn(arrival, run),
      accept: (stream, peer) => accept(stream, peer, arrival),
      holds: (bytes) => arrivals.holds(arrival, bytes),
      left: () => arrivals.left(arrival),
      isAuthenticated: () => arrival.state === "authenticated"
    }
  }

  let isLeaving = false
  /** What was under way has been waited for, as long as it may. */
  let hasDrained = false

  const settled = (underway: () => number) =>
    Effect.sync(underway).pipe(
      Effect.repeat({ while: (count) => count > 0, schedule: Schedule.spaced("10 millis") })
    )

  const close = ({ connection, stream }: ConnectionState) =>
    connection?.close("shutdown") ?? Effect.sync(() => void stream.destroy())

  /** Waits until the device is offline. Whoever waits no longer does not stop it. */
  const detach = (state: ConnectionState) => Effect.suspend(() => Fiber.await(runFork(connecting.detach(state))))

  /** Ends a connection when nothing of it is under way. */
  const leave = Effect.fnUntraced(function*(state: ConnectionState) {
    const { connection } = state
    if (connection?.session === undefined) return void state.stream.destroy()
    yield* sessions.retire(connection.session)
    state.isEnding = true
    yield* settled(state.underway).pipe(
      Effect.andThen(close(state)),
      Effect.andThen(detach(state)),
      Effect.timeoutOption(drainTimeout)
    )
    yield* close(state)
  })

  const drain = Effect.fnUntraced(function*(time: Duration.Input) {
    isLeaving = true
    for (const { close } of listeners) yield* close
    const open = connections.all()
    const millis = Duration.toMillis(time)
    const slices = Math.max(1, Math.min(open.length, Math.floor(millis / drainSlice)))
    const leaving: Array<Fiber.Fiber<void>> = []
    for (let slice = 0; slice < slices; slice++) {
      if (slice > 0) yield* Effect.sleep(millis / slices)
      const [start, end] = [slice, slice + 1].map((of) => Math.round(of * open.length / slices))
      for (const state of open.slice(start, end)) leaving.push(yield* Effect.forkChild(leave(state)))
    }
    yield* Fiber.awaitAll(leaving)
    hasDrained = true
  })

  /** Does with each open connection what `run` does. */
  const withEach = (run: (state: ConnectionState) => Effect.Effect<unknown>) =>
    Effect.suspend(() => Effect.forEach(connections.all(), run, { concurrency: "unbounded", discard: true }))

  /** Reads nothing more, waits for messages on their way to the store, and closes all connections. */
  const end = Effect.gen(function*() {
    connections.isStopping = true
    if (!hasDrained) {
      yield* settled(messages.underway).pipe(
        Effect.andThen(withEach((state) => Effect.andThen(close(state), detach(state)))),
        Effect.timeoutOption(drainTimeout)
      )
    }
    yield* withEach(close)
    yield* Effect.callback<void>((resume) => broker.close(() => resume(Effect.void)))
  })
  yield* Effect.addFinalizer(() => end)

  const { host, proxyProtocol = false, tcp, tls } = options
  const reception: Reception = {
    accept,
    arrivals,
    came: () => newcomers.came(),
    handshakeTime: limits.connectTime,
    proxies: proxyProtocol ? yield* TrustedProxies : undefined,
    refused: () => countTurnedAway("no proxy")
  }
  const mqtts = tls && (yield* listenTls(host, tls, reception))
  const mqtt = tcp && (yield* listenTcp(host, tcp.port, reception))
  const listeners = [mqtts, mqtt].filter((listener) => listener !== undefined)

  const url = (scheme: string, listener: Listener | undefined) =>
    listener && `${scheme}://${host.includes(":") ? `[${host}]` : host}:${listener.port}`

  return MqttServer.of({ mqtts: url("mqtts", mqtts), mqtt: url("mqtt", mqtt), admit, drain })
})
