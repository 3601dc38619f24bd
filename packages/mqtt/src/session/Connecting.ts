/**
 * Lets devices in: from a CONNECT packet to an attached device, or to a refusal.
 */
import { ConnectPacket, type Router } from "@device-cloud/alink"
import {
  ChurnMap,
  ConnectRefusals,
  DeviceAuthenticator,
  type DeviceIdentity,
  DeviceName,
  DeviceSessions,
  ProductKey,
  Provisioning,
  TraceRecorder
} from "@device-cloud/core"
import type { AedesOptions, Client } from "aedes"
import { Cause, Clock, Effect, Exit, Fiber, Metric, Option, Schedule, Schema, type Scope } from "effect"
import type { KeptSessions } from "../protocol/KeptSessions.ts"
import * as PublishPacket from "../protocol/PublishPacket.ts"
import type { TurnWrites } from "../protocol/TurnWrites.ts"
import type { Arrivals } from "./Arrivals.ts"
import type { UnsentOutput } from "./UnsentOutput.ts"
import type { Connections, ConnectionState } from "./ConnectionState.ts"
import { MqttConnection } from "./MqttConnection.ts"
import { transportOf } from "./Peer.ts"
import type { ReadinessWatch } from "./Readiness.ts"

export interface Connecting {
  /** The hook that aedes calls with the credentials of a CONNECT. */
  readonly authenticate: NonNullable<AedesOptions["authenticate"]>
  /** Detaches the device of a connection, if there is one. */
  readonly detach: (state: ConnectionState) => Effect.Effect<void>
}

/** How long the cloud may take to say who a device is, milliseconds. */
const connectMillis = 8000

const refused = Metric.counter("device_cloud_mqtt_connects_refused_total", {
  description: "Refused CONNECT packets, by CONNACK return code",
  incremental: true
})

/** CONNACK return codes (MQTT 3.1.1, table 3.1). */
const connack = { identifierRejected: 2, unavailable: 3, badCredentials: 4, notAuthorized: 5 } as const

class ConnectRefused extends Schema.TaggedError<ConnectRefused>()("ConnectRefused", {
  returnCode: Schema.Literals([2, 3, 4, 5]),
  reason: Schema.String,
  /** The device that has proved who it is; undefined: none, or the user name names it. */
  device: Schema.UndefinedOr(Schema.Struct({ productKey: ProductKey, deviceName: DeviceName }))
}) {}

const refuse = (returnCode: ConnectRefused["returnCode"], reason: string, device?: ProvedNames) =>
  new ConnectRefused({
    returnCode,
    reason,
    device: device && {
      productKey: ProductKey.make(device.productKey),
      deviceName: DeviceName.make(device.deviceName)
    }
  })

/** The names in an error about a device that has proved who it is. */
interface ProvedNames {
  readonly productKey: string
  readonly deviceName: string
}

/** The part of a CONNECT that says who the device is. */
interface Credentials {
  readonly userName: string | undefined
  readonly password: string | undefined
}

/** A device, and the fingerprint of its certificate if that has proved who it is. */
interface Identified {
  readonly device: DeviceIdentity
  readonly certificate?: string
}

/** What connections share. */
export interface ConnectingParts {
  readonly arrivals: Arrivals
  readonly kept: KeptSessions
  readonly unsent: UnsentOutput
  readonly writes: TurnWrites
  readonly readiness: ReadinessWatch
  /** Bytes that may wait in the socket of one device. */
  readonly maxUnsentBytes: number
  readonly route: Router
}

export const make = Effect.fnUntraced(function*(
  connections: Connections,
  { arrivals, kept, maxUnsentBytes, readiness, route, unsent, writes }: ConnectingParts
): Effect.fn.Return<
  Connecting,
  never,
  ConnectRefusals | DeviceAuthenticator | DeviceSessions | Provisioning | TraceRecorder | Scope.Scope
> {
  const authenticator = yield* DeviceAuthenticator
  const provisioning = yield* Provisioning
  const sessions = yield* DeviceSessions
  const refusals = yield* ConnectRefusals
  const recorder = yield* TraceRecorder
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Connections whose credentials are being checked, by number, with the start of the check in Unix milliseconds. */
  const connecting = new ChurnMap<number, { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly since: number }>()

  const detach = (state: ConnectionState) => {
    const session = state.connection?.session
    state.connection = undefined
    if (session === undefined) return Effect.void
    kept.disconnects(session.connection.device.deviceId, session)
    return sessions.detach(session)
  }

  /** Returns the packet that tells a device its secret, or its token. */
  const register = Effect.fnUntraced(
    function*({ request, unlisted }: ConnectPacket.ConnectIntent & { readonly _tag: "Register" }, address: string) {
      if (!unlisted) {
        const triple = yield* provisioning.registerNamed(request, address)
        return PublishPacket.encode("/ext/register", JSON.stringify(triple), undefined)
      }
      const { token, ...rest } = yield* provisioning.registerUnlisted(request, address)
      return PublishPacket.encode("/ext/regnwl", JSON.stringify({ ...rest, deviceToken: token }), undefined)
    }
  )

  /** Returns the device that a signature or token proves; undefined for a device that has registered instead. */
  const verify = Effect.fnUntraced(function*(state: ConnectionState, { password, userName }: Credentials) {
    const { peer: { address, isSecure }, clientId } = state
    const intent = yield* Effect.fromResult(ConnectPacket.parse({ clientId, username: userName, password }, address))
    switch (intent._tag) {
      case "Signed":
        return { device: yield* authenticator.authenticate(intent.credentials) }
      case "Token":
        return { device: yield* authenticator.authenticateToken(intent.credentials) }
      case "Register": {
        if (!isSecure) return yield* refuse(connack.notAuthorized, "registration without TLS")
        state.registered = yield* register(intent, address)
        return undefined
      }
    }
  })

  /** Returns the device that the credentials prove; undefined for a device that has registered instead. */
  const identify = Effect.fnUntraced(function*(state: ConnectionState, credentials: Credentials) {
    const { peer: { address, certificate, isCertificateTrusted }, clientId } = state
    const { password, userName } = credentials
    const proved = yield* authenticator.prove({
      transport: "mqtt",
      address,
      clientId,
      userName,
      password,
      certificate: isCertificateTrusted === true ? certificate : undefined
    })
    if (Option.isSome(proved)) return { device: proved.value }
    if (certificate === undefined) return yield* verify(state, credentials)
    const { fingerprint } = certificate
    const holder = yield* authenticator.authenticateCertificate({
      fingerprint,
      device: ConnectPacket.namedDevice(userName)
    })
    if (Option.isSome(holder)) return { device: holder.value, certificate: fingerprint }
    if (!password) return yield* refuse(connack.badCredentials, "no device holds the certificate")
    return yield* verify(state, credentials)
  })

  const attach = Effect.fnUntraced(function*(
    client: Client,
    state: ConnectionState,
    { certificate, device }: Identified
  ) {
    const connection = new MqttConnection({
      client,
      stream: state.stream,
      device,
      certificate,
      ip: state.peer.address,
      transport: transportOf(state.peer),
      recorder,
      route,
      readiness,
      unsent,
      writes,
      maxUnsentBytes
    })
    connection.session = yield* sessions.attach(connection)
    // The MQTT session belongs to the device, whatever client id it chose. A client that is refused has none:
    // aedes ends that of a clean client with its connection.
    client.id = device.deviceId
    kept.connects(client.id, connection.session)
    state.connection = connection
    state.drained = () => connection.drained()
    arrivals.authenticated(state.arrival)
    if (state.stream.destroyed) yield* detach(state)
  })

  const connect = Effect.fnUntraced(
    function*(client: Client, state: ConnectionState, credentials: Credentials) {
      if (connections.isStopping) return yield* refuse(connack.unavailable, "shutting down")
      if (state.clientId === "" && !client.clean) {
        return yield* refuse(connack.identifierRejected, "empty client id without clean session")
      }
      const identified = yield* identify(state, credentials)
      if (identified !== undefined) yield* attach(client, state, identified)
    },
    Effect.catchTags({
      MalformedCredentials: ({ reason }) => refuse(connack.badCredentials, reason),
      ProofRefused: ({ reason }) => refuse(connack.badCredentials, reason),
      DeviceNotFound: () => refuse(connack.badCredentials, "unknown device"),
      WrongSignature: () => refuse(connack.badCredentials, "wrong signature"),
      CertificateRequired: () => refuse(connack.badCredentials, "the device needs its client certificate"),
      CertificateRefused: (error) => refuse(connack.badCredentials, error.reason, error),
      DeviceDisabled: (error) => refuse(connack.notAuthorized, "device disabled", error),
      SubDeviceOnly: () => refuse(connack.notAuthorized, "a sub-device speaks through its gateway"),
      QuotaExceeded: () => refuse(connack.notAuthorized, "the project may have no more devices"),
      TooManyRegistrations: () => refuse(connack.unavailable, "too many registrations"),
      TooManyWrongSignatures: () => refuse(connack.notAuthorized, "too many wrong signatures"),
      ProductNotFound: () => refuse(connack.badCredentials, "unknown product"),
      InvalidInput: ({ issues: [{ message, path }] }) =>
        refuse(connack.badCredentials, `${path.join(".")}: ${message}`),
      RegistrationOff: () => refuse(connack.notAuthorized, "registration is off"),
      AlreadyActive: () => refuse(connack.notAuthorized, "device already active"),
      DeviceNotConnectable: () => refuse(connack.notAuthorized, "device disabled"),
      StoreError: () => refuse(connack.unavailable, "store unreachable")
    })
  )

  const authenticate: Connecting["authenticate"] = (client, userName, password, done) => {
    const state = connections.of(client)
    // The connection has ended meanwhile.
    if (state === undefined) return done(null, true)
    const fiber = runFork(connect(client, state, { userName, password: password?.toString() }))
    connecting.set(state.number, { fiber, since: clock.currentTimeMillisUnsafe() })
    fiber.addObserver((exit) => {
      connecting.delete(state.number)
      if (Exit.isSuccess(exit)) return done(null, true)
      const error = Cause.squash(exit.cause)
      const { device = ConnectPacket.namedDevice(userName), reason, returnCode } = error instanceof ConnectRefused
        ? error
        : refuse(connack.unavailable, "internal error")
      if (!(error instanceof ConnectRefused) && !Cause.hasInterruptsOnly(exit.cause)) {
        runFork(Effect.logError("A CONNECT failed", exit.cause))
      }
      if (!connections.isStopping) {
        const { address } = state.peer
        refusals.note({ device, address, transport: transportOf(state.peer), reason, returnCode })
      }
      runFork(Metric.update(Metric.withAttributes(refused, { return_code: String(returnCode) }), 1))
      done(Object.assign(new Error(reason), { returnCode }), null)
    })
  }

  // One look a second at all of them costs less than a timer for each.
  yield* Effect.suspend(() => {
    const tooOld = clock.currentTimeMillisUnsafe() - connectMillis
    return Fiber.interruptAll(connecting.values().flatMap(({ fiber, since }) => since < tooOld ? [fiber] : []))
  }).pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.forkScoped)

  return { authenticate, detach }
})
