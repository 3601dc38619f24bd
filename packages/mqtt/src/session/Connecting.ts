/**
 * Lets devices in: from a CONNECT packet to an attached device, or to a refusal.
 */
import {
  ChurnMap,
  ConnectRefusals,
  DeviceAuthenticator,
  type DeviceIdentity,
  DeviceSessions,
  Provisioning
} from "@device-cloud/core"
import type { AedesOptions, Client } from "aedes"
import { Cause, Clock, Effect, Exit, Fiber, Metric, Option, Schedule, Schema, type Scope } from "effect"
import * as PublishPacket from "../protocol/PublishPacket.ts"
import type { Router } from "../topics/TopicRouter.ts"
import type { Arrivals } from "./Arrivals.ts"
import type { UnsentOutput } from "./UnsentOutput.ts"
import type { Connections, ConnectionState } from "./ConnectionState.ts"
import * as ConnectPacket from "./ConnectPacket.ts"
import { MqttConnection } from "./MqttConnection.ts"
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
  reason: Schema.String
}) {}

const refuse = (returnCode: ConnectRefused["returnCode"], reason: string) => new ConnectRefused({ returnCode, reason })

/** The part of a CONNECT that says who the device is. */
interface Credentials {
  readonly userName: string | undefined
  readonly password: string | undefined
}

/** What connections share. */
export interface ConnectingParts {
  readonly arrivals: Arrivals
  readonly unsent: UnsentOutput
  readonly readiness: ReadinessWatch
  /** Bytes that may wait in the socket of one device. */
  readonly maxUnsentBytes: number
  readonly route: Router
}

export const make = Effect.fnUntraced(function*(
  connections: Connections,
  { arrivals, maxUnsentBytes, readiness, route, unsent }: ConnectingParts
): Effect.fn.Return<
  Connecting,
  never,
  ConnectRefusals | DeviceAuthenticator | DeviceSessions | Provisioning | Scope.Scope
> {
  const authenticator = yield* DeviceAuthenticator
  const provisioning = yield* Provisioning
  const sessions = yield* DeviceSessions
  const refusals = yield* ConnectRefusals
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Connections whose credentials are being checked, by number, with the start of the check in Unix milliseconds. */
  const connecting = new ChurnMap<number, { readonly fiber: Fiber.Fiber<unknown, unknown>; readonly since: number }>()

  const detach = (state: ConnectionState) => {
    const session = state.connection?.session
    state.connection = undefined
    return session === undefined ? Effect.void : sessions.detach(session)
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

  /** Returns the device that the credentials prove; undefined for a device that has registered instead. */
  const identify = Effect.fnUntraced(function*(state: ConnectionState, { password, userName }: Credentials) {
    const { clientId, peer } = state
    const { address, certificate } = peer
    const proved = yield* authenticator.prove({
      transport: "mqtt",
      address,
      clientId,
      userName,
      password,
      certificate
    })
    if (Option.isSome(proved)) return proved.value
    const intent = yield* Effect.fromResult(ConnectPacket.parse({ clientId, username: userName, password }, address))
    switch (intent._tag) {
      case "Signed":
        return yield* authenticator.authenticate(intent.credentials)
      case "Token":
        return yield* authenticator.authenticateToken(intent.credentials)
      case "Register": {
        if (!peer.isSecure) return yield* refuse(connack.notAuthorized, "registration without TLS")
        state.registered = yield* register(intent, address)
        return undefined
      }
    }
  })

  const attach = Effect.fnUntraced(function*(client: Client, state: ConnectionState, device: DeviceIdentity) {
    // The MQTT session belongs to the device, whatever client id it chose.
    client.id = device.deviceId
    const connection = new MqttConnection({
      client,
      stream: state.stream,
      device,
      ip: state.peer.address,
      route,
      readiness,
      unsent,
      maxUnsentBytes
    })
    connection.session = yield* sessions.attach(connection)
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
      const device = yield* identify(state, credentials)
      if (device !== undefined) yield* attach(client, state, device)
    },
    Effect.catchTags({
      MalformedCredentials: ({ reason }) => refuse(connack.badCredentials, reason),
      ProofRefused: ({ reason }) => refuse(connack.badCredentials, reason),
      DeviceNotFound: () => refuse(connack.badCredentials, "unknown device"),
      WrongSignature: () => refuse(connack.badCredentials, "wrong signature"),
      DeviceDisabled: () => refuse(connack.notAuthorized, "device disabled"),
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
      const { reason, returnCode } = error instanceof ConnectRefused
        ? error
        : refuse(connack.unavailable, "internal error")
      if (!(error instanceof ConnectRefused) && !Cause.hasInterruptsOnly(exit.cause)) {
        runFork(Effect.logError("A CONNECT failed", exit.cause))
      }
      if (!connections.isStopping) {
        const { address } = state.peer
        refusals.note({ device: ConnectPacket.namedDevice(userName), address, reason, returnCode })
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
