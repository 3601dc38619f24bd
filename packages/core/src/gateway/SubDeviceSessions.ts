/**
 * Sub-devices that are online through the connection of their gateway
 * (alink-facts, section 3.14).
 */
import { Context, Effect, Layer, Option, Result, Semaphore } from "effect"
import { type DeviceIdentity, deviceKey } from "../device/Device.ts"
import type { DeviceConnection, DeviceSession, DisconnectReason, DownlinkMessage } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import {
  deviceDisabled,
  deviceNotFound,
  type DeviceReply,
  noSession,
  noTopology,
  success,
  systemError,
  tooManyRequests,
  tooManySessions,
  topicError,
  wrongSignature
} from "../uplink/DeviceReply.ts"
import { DeviceAuthenticator } from "../provisioning/DeviceAuthenticator.ts"
import type { SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import { maxSubDevices } from "./Topology.ts"
import { nameOf } from "./TopologyChange.ts"
import { type SessionRequest, sessionRequest, type SubDeviceProof } from "./TopologyMessage.ts"
import { TopologyStore } from "./TopologyStore.ts"

export class SubDeviceSessions extends Context.Service<SubDeviceSessions, {
  /**
   * Carries out `combine.login`, `combine.logout`, `combine.batch_login` or
   * `combine.batch_logout`. Through `session`, the gateway's connection,
   * sub-devices are online as long as it is; without one for five minutes.
   */
  readonly answer: (
    gateway: DeviceIdentity,
    session: DeviceSession | undefined,
    ip: string,
    method: string,
    params: unknown
  ) => Effect.Effect<DeviceReply>
  /** The sub-device of this name that is online through the gateway's connection. */
  readonly carried: (gateway: DeviceSession, name: SubDeviceName) => DeviceIdentity | undefined
  /**
   * The gateway has used a topic of a device that is not online through it: it is
   * told so if the device is its own, otherwise the answer is false.
   */
  readonly refuse: (gateway: DeviceIdentity, name: SubDeviceName) => Effect.Effect<boolean>
}>()("@device-cloud/core/gateway/SubDeviceSessions") {
  static readonly layer: Layer.Layer<SubDeviceSessions, never, TopologyStore | DeviceAuthenticator | DeviceSessions> =
    Layer.effect(SubDeviceSessions, Effect.suspend(() => make))
}

/** The method of what tells a gateway that a session of a sub-device has ended, or was never there. */
export const sessionErrorMethod = "ext.error"

/** Why a session of a sub-device has ended, as its gateway is told. */
const errors: Readonly<
  Record<Exclude<DisconnectReason, "shutdown">, { readonly code: number; readonly message: string }>
> = {
  replaced: { code: 427, message: "device connect elsewhere" },
  deleted: { code: 521, message: "device deleted" },
  disabled: { code: 522, message: "device forbidden" },
  detached: noTopology
}

const sessionError = (
  { code, message }: { readonly code: number; readonly message: string },
  name: SubDeviceName
): Pick<DownlinkMessage, "method" | "params"> => ({
  method: sessionErrorMethod,
  params: { code, message, data: nameOf(name) }
})

/** What is known of a gateway's connection. */
interface GatewayState {
  /** Requests of one gateway are carried out one after the other. */
  readonly turn: Semaphore.Semaphore
  readonly sessions: Map<string, DeviceSession>
  hasEnded: boolean
}

const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const authenticator = yield* DeviceAuthenticator
  const link = yield* DeviceSessions
  const gateways = new WeakMap<DeviceSession, GatewayState>()
  /** The gateway's connection that carries a session of a sub-device. */
  const carriers = new WeakMap<DeviceSession, GatewayState>()
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  yield* link.listen({
    detached: (session) => {
      const key = deviceKey(session.connection.device)
      const carrier = carriers.get(session)
      if (carrier?.sessions.get(key) === session) carrier.sessions.delete(key)
      const state = gateways.get(session)
      if (state === undefined) return
      state.hasEnded = true
      gateways.delete(session)
      for (const carried of state.sessions.values()) runFork(link.detach(carried))
    }
  })

  const stateOf = (gateway: DeviceSession): GatewayState | undefined => {
    const known = gateways.get(gateway)
    if (known !== undefined) return known
    if (link.session(gateway.connection.device.deviceId) !== gateway) return undefined
    const state = { turn: Semaphore.makeUnsafe(1), sessions: new Map(), hasEnded: false }
    gateways.set(gateway, state)
    return state
  }

  /** Proves who the sub-devices are and that they belong to the gateway, or answers why not. */
  const check = Effect.fnUntraced(function*(gateway: DeviceIdentity, proofs: ReadonlyArray<SubDeviceProof>) {
    const attachments = yield* store.attachments(proofs)
    const subDevices: Array<DeviceIdentity> = []
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
      if ("code" in subDevice) return subDevice
      if (Option.getOrUndefined(attachments[i]!)?.gateway.deviceId !== gateway.deviceId) return noTopology
      subDevices.push(subDevice)
    }
    return subDevices
  })

  const belongTo = (gateway: DeviceIdentity, names: ReadonlyArray<SubDeviceName>) =>
    Effect.map(
      store.attachments(names),
      (attachments) => attachments.every((each) => Option.getOrUndefined(each)?.gateway.deviceId === gateway.deviceId)
    )

  const carry = Effect.fnUntraced(function*(gateway: DeviceSession, state: GatewayState, subDevice: DeviceIdentity) {
    const key = deviceKey(subDevice)
    const known = state.sessions.get(key)
    if (known !== undefined && link.session(subDevice.deviceId) === known) return
    let session: DeviceSession | undefined
    let isClosed = false
    const connection: DeviceConnection = {
      device: subDevice,
      ip: gateway.connection.ip,
      deliver: (message, acknowledged) => gateway.connection.deliver({ ...message, subDevice }, acknowledged),
      backlog: () => gateway.connection.backlog(),
      close: Effect.fnUntraced(function*(reason) {
        // The gateway's connection ends as well, and this one with it.
        if (reason === "shutdown") return
        isClosed = true
        yield* link.deliver(gateway.connection.device.deviceId, sessionError(errors[reason], subDevice))
        if (session !== undefined) yield* link.detach(session)
      })
    }
    session = yield* link.attach(connection)
    carriers.set(session, state)
    state.sessions.set(key, session)
    if (state.hasEnded || isClosed) yield* link.detach(session)
  })

  const login = Effect.fnUntraced(
    function*(gateway: DeviceSession, state: GatewayState, proofs: ReadonlyArray<SubDeviceProof>) {
      const { device } = gateway.connection
      const subDevices = yield* check(device, proofs)
      if ("code" in subDevices) return subDevices
      const distinct = [...new Map(subDevices.map((subDevice) => [deviceKey(subDevice), subDevice])).values()]
      const added = distinct.map(deviceKey).filter((key) => !state.sessions.has(key))
      if (state.sessions.size + added.length > maxSubDevices) return tooManySessions
      // All come to their end: one that is let go halfway would be online without a gateway that carries it.
      const carried = yield* Effect.forEach(distinct, (each) => Effect.result(carry(gateway, state, each)), {
        concurrency: "unbounded"
      })
      // Who was removed from the topology meanwhile had no session that could be ended.
      const belong = yield* Effect.result(
        Effect.andThen(Effect.forEach(carried, Effect.fromResult, { discard: true }), belongTo(device, distinct))
      )
      if (Result.isSuccess(belong) && belong.success) return state.hasEnded ? noSession : subDevices
      const started = added.flatMap((key) => state.sessions.get(key) ?? [])
      yield* Effect.forEach(started, link.detach, { concurrency: "unbounded", discard: true })
      if (Result.isSuccess(belong)) return noTopology
      return belong.failure._tag === "DeviceNotConnectable" ? deviceDisabled : yield* belong.failure
    }
  )

  const logout = Effect.fnUntraced(function*(state: GatewayState, names: ReadonlyArray<SubDeviceName>) {
    const sessions = names.map((name) => state.sessions.get(deviceKey(name)))
    if (sessions.some((session) => session === undefined)) return noSession
    yield* Effect.forEach(sessions, (session) => link.detach(session!), { concurrency: "unbounded", discard: true })
    return names
  })

  /** A gateway without a connection speaks for sub-devices that count as online for a time. */
  const sight = Effect.fnUntraced(function*(gateway: DeviceIdentity, ip: string, request: SessionRequest) {
    if (request._tag === "Login") {
      const subDevices = yield* check(gateway, request.proofs)
      if ("code" in subDevices) return subDevices
      yield* Effect.forEach(subDevices, (subDevice) => link.markSeen(subDevice, ip), { concurrency: 16, discard: true })
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
    yield* link.markOffline(subDevices.map(({ deviceId }) => deviceId))
    return request.names
  })

  const outcome = Effect.fnUntraced(
    function*(gateway: DeviceIdentity, session: DeviceSession | undefined, ip: string, request: SessionRequest) {
      if (session === undefined) return yield* sight(gateway, ip, request)
      const state = stateOf(session)
      // Its connection has ended meanwhile.
      if (state === undefined) return noSession
      return yield* state.turn.withPermits(1)(
        request._tag === "Login" ? login(session, state, request.proofs) : logout(state, request.names)
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
      const done = yield* outcome(gateway, session, ip, request)
      if ("code" in done) return done
      const names = done.map(nameOf)
      return success(request.isBatch ? names : names[0]!)
    },
    Effect.catch((error) =>
      Effect.as(Effect.logWarning("A sub-device's session could not be stored", error), systemError)
    )
  )

  return SubDeviceSessions.of({
    answer,
    carried: (gateway, name) => gateways.get(gateway)?.sessions.get(deviceKey(name))?.connection.device,
    refuse: Effect.fnUntraced(function*(gateway, name) {
      const [attachment] = yield* store.attachments([name])
      if (Option.getOrUndefined(attachment!)?.gateway.deviceId !== gateway.deviceId) return false
      yield* link.deliver(gateway.deviceId, sessionError(noSession, name))
      return true
    }, Effect.orElseSucceed(() => false))
  })
})
