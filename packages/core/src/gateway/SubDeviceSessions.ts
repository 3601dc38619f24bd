/**
 * Logs sub-devices in and out for their gateways (docs/protocol/gateways.md).
 */
import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import type { DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { type DeviceIdentity, deviceKey } from "../device/Device.ts"
import { DeviceAuthenticator } from "../provisioning/DeviceAuthenticator.ts"
import { TraceRecorder } from "../trace/TraceRecorder.ts"
import {
  deviceDisabled,
  deviceNotFound,
  type DeviceReply,
  failure,
  noSession,
  noTopology,
  success,
  systemError,
  tooManyRequests,
  tooManySessions,
  topicError,
  wrongSignature
} from "../uplink/DeviceReply.ts"
import type { SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import * as CarriedSessions from "./CarriedSessions.ts"
import { maxSubDevices } from "./Topology.ts"
import { nameOf } from "./TopologyChange.ts"
import { timeOfProof } from "./TopologyClaim.ts"
import { type SessionRequest, sessionRequest, type SubDeviceProof } from "./TopologyMessage.ts"
import { TopologyStore } from "./TopologyStore.ts"

export class SubDeviceSessions extends Context.Service<SubDeviceSessions, {
  /**
   * Carries out `combine.login`, `combine.logout`, `combine.batch_login` or
   * `combine.batch_logout` and returns the reply; a batch takes effect wholly or
   * not at all. With `session`, the gateway's connection, sub-devices are online
   * as long as that connection. Without it, they are online for five minutes
   * after each login.
   */
  readonly answer: (
    gateway: DeviceIdentity,
    session: DeviceSession | undefined,
    ip: string,
    method: string,
    params: unknown
  ) => Effect.Effect<DeviceReply>
  /** Returns the sub-device of this name that is online through the gateway's connection; undefined: none is. */
  readonly carried: (gateway: DeviceSession, name: SubDeviceName) => DeviceIdentity | undefined
  /**
   * Call it when the gateway uses a topic of a device that is not online through
   * it. If the device belongs to the gateway, tells the gateway that there is no
   * session and returns true; otherwise returns false.
   */
  readonly refuse: (gateway: DeviceIdentity, name: SubDeviceName) => Effect.Effect<boolean>
}>()("@device-cloud/core/gateway/SubDeviceSessions") {
  static readonly layer: Layer.Layer<
    SubDeviceSessions,
    never,
    TopologyStore | DeviceAuthenticator | DeviceSessions | TraceRecorder
  > = Layer.effect(SubDeviceSessions, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const authenticator = yield* DeviceAuthenticator
  const sessions = yield* DeviceSessions
  const recorder = yield* TraceRecorder
  const carriedSessions = yield* CarriedSessions.make

  /**
   * Returns the sub-devices if each proves itself and belongs to the gateway;
   * otherwise the reply that refuses them.
   */
  const authenticate = Effect.fnUntraced(function*(gateway: DeviceIdentity, proofs: ReadonlyArray<SubDeviceProof>) {
    const attachments = yield* store.attachments(proofs)
    const now = yield* Clock.currentTimeMillis
    const subDevices: Array<DeviceIdentity> = []
    const refuse = (name: SubDeviceName, reply: DeviceReply) => {
      recorder.noteNamed(name, {
        kind: "refused",
        transport: "gateway",
        gateway: { productKey: gateway.productKey, deviceName: gateway.deviceName },
        reason: reply.message
      })
      return reply
    }
    for (let i = 0; i < proofs.length; i++) {
      const { fields, sign, signMethod, ...name } = proofs[i]!
      const subDevice = yield* authenticator.authenticateSubDevice({
        ...name,
        signMethod,
        signature: sign,
        fields,
        projectId: gateway.projectId,
        address: gateway.deviceId
      }).pipe(Effect.catchTags({
        DeviceNotFound: () => Effect.succeed(deviceNotFound),
        WrongSignature: () => Effect.succeed(wrongSignature),
        DeviceDisabled: () => Effect.succeed(deviceDisabled),
        TooManyWrongSignatures: () => Effect.succeed(tooManyRequests)
      }))
      if ("code" in subDevice) return refuse(name, subDevice)
      const time = timeOfProof(proofs[i]!, gateway, now)
      if (typeof time === "string") {
        return refuse(name, failure(wrongSignature.code, `${wrongSignature.message}: ${time}`))
      }
      if (Option.getOrUndefined(attachments[i]!)?.gateway.deviceId !== gateway.deviceId) {
        return refuse(name, noTopology)
      }
      subDevices.push(subDevice)
    }
    return subDevices
  })

  const belongTo = (gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) =>
    Effect.map(
      store.attachments(names),
      (attachments) => attachments.every((each) => Option.getOrUndefined(each)?.gateway.deviceId === gateway.deviceId)
    )

  const login = Effect.fnUntraced(
    function*(
      gateway: DeviceSession,
      connection: CarriedSessions.GatewayConnection,
      proofs: ReadonlyArray<SubDeviceProof>
    ) {
      const { device } = gateway.connection
      const subDevices = yield* authenticate(device, proofs)
      if ("code" in subDevices) return subDevices
      const distinct = [...new Map(subDevices.map((subDevice) => [deviceKey(subDevice), subDevice])).values()]
      const added = distinct.map(deviceKey).filter((key) => !connection.carried.has(key))
      if (connection.carried.size + added.length > maxSubDevices) return tooManySessions
      // Each attempt runs to its end: an abandoned one would leave a device online that no gateway carries.
      const attempts = yield* Effect.forEach(
        distinct,
        (each) => Effect.result(carriedSessions.carry(gateway, connection, each)),
        { concurrency: "unbounded" }
      )
      // A device that left the topology meanwhile had no session yet that could be ended.
      const belong = yield* Effect.result(
        Effect.andThen(Effect.forEach(attempts, Effect.fromResult, { discard: true }), belongTo(device, distinct))
      )
      if (Result.isSuccess(belong) && belong.success) return connection.hasEnded ? noSession : subDevices
      const started = added.flatMap((key) => connection.carried.get(key) ?? [])
      yield* Effect.forEach(started, sessions.detach, { concurrency: "unbounded", discard: true })
      if (Result.isSuccess(belong)) return noTopology
      return belong.failure._tag === "DeviceNotConnectable" ? deviceDisabled : yield* belong.failure
    }
  )

  const logout = Effect.fnUntraced(
    function*({ carried }: CarriedSessions.GatewayConnection, names: ReadonlyArray<SubDeviceName>) {
      const ending = names.map((name) => carried.get(deviceKey(name)))
      if (ending.some((session) => session === undefined)) return noSession
      yield* Effect.forEach(ending, (session) => sessions.detach(session!), {
        concurrency: "unbounded",
        discard: true
      })
      return names
    }
  )

  /** Logs sub-devices in or out for a gateway without a connection: a login keeps them online for five minutes. */
  const markPresence = Effect.fnUntraced(function*(gateway: DeviceIdentity, ip: string, request: SessionRequest) {
    if (request._tag === "Login") {
      const subDevices = yield* authenticate(gateway, request.proofs)
      if ("code" in subDevices) return subDevices
      const through = { transport: "gateway", gateway }
      yield* Effect.forEach(subDevices, (subDevice) => sessions.markSeen(subDevice, ip, through), {
        concurrency: 16,
        discard: true
      })
      return subDevices
    }
    const attachments = yield* store.attachments(request.names)
    const subDevices = attachments.flatMap((attachment) =>
      Option.match(Option.filter(attachment, (each) => each.gateway.deviceId === gateway.deviceId), {
        onNone: () => [],
        onSome: ({ subDevice }) => [subDevice]
      })
    )
    if (subDevices.length < request.names.length) return noSession
    yield* sessions.markOffline(subDevices.map(({ deviceId }) => deviceId), CarriedSessions.loggedOut)
    return request.names
  })

  /** Returns the sub-devices that the request names, or the reply that refuses it. */
  const carryOut = Effect.fnUntraced(
    function*(gateway: DeviceIdentity, session: DeviceSession | undefined, ip: string, request: SessionRequest) {
      if (session === undefined) return yield* markPresence(gateway, ip, request)
      const connection = carriedSessions.connectionOf(session)
      if (connection === undefined) return noSession
      return yield* connection.inTurn(
        request._tag === "Login" ? login(session, connection, request.proofs) : logout(connection, request.names)
      )
    }
  )

  const answer = Effect.fnUntraced(
    function*(
      gateway: DeviceIdentity,
      session: DeviceSession | undefined,
      ip: string,
      method: string,
      params: unknown
    ) {
      const request = sessionRequest(method, params)
      if (request === undefined) return topicError
      if ("code" in request) return request
      const outcome = yield* carryOut(gateway, session, ip, request)
      if ("code" in outcome) return outcome
      const names = outcome.map(nameOf)
      return success(request.isBatch ? names : names[0]!)
    },
    Effect.catch((error) =>
      Effect.as(Effect.logWarning("A sub-device's session could not be stored", error), systemError)
    )
  )

  return SubDeviceSessions.of({
    answer,
    carried: carriedSessions.find,
    refuse: Effect.fnUntraced(function*(gateway, name) {
      const [attachment] = yield* store.attachments([name])
      if (Option.getOrUndefined(attachment!)?.gateway.deviceId !== gateway.deviceId) return false
      yield* sessions.deliver(gateway.deviceId, CarriedSessions.sessionError(noSession, name))
      return true
    }, Effect.orElseSucceed(() => false))
  })
})
