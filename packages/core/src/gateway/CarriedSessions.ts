/**
 * Sessions of sub-devices that the connection of their gateway carries: they
 * begin after it and end with it (docs/protocol/gateways.md).
 */
import { Array, Effect, PartitionedSemaphore } from "effect"
import {
  close,
  type DeviceConnection,
  type DeviceSession,
  type DisconnectReason,
  disconnectSentences,
  type DownlinkMessage
} from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { PresenceTimes } from "../connection/PresenceTimes.ts"
import { type DeviceIdentity, deviceKey } from "../device/Device.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { untilStored } from "../kernel/StoreError.ts"
import { noTopology } from "../uplink/DeviceReply.ts"
import type { SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import { nameOf } from "./TopologyChange.ts"
import { TopologyStore } from "./TopologyStore.ts"

/** The connection of one gateway, and the sub-devices that are online through it. */
export interface GatewayConnection {
  /** The requests of one gateway run one after the other, in their order. */
  readonly inTurn: <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** By `deviceKey` of the sub-device. */
  readonly carried: Map<string, DeviceSession>
  hasEnded: boolean
}

/** Why a sub-device goes offline that its gateway has logged out, in a sentence for operators. */
export const loggedOut = "its gateway has logged it out"

/** Sessions that are compared with the topology at once. */
const compared = 1000

/** The method of the message that tells a gateway that a sub-device has no session, or has lost it. */
export const sessionErrorMethod = "ext.error"

/** What a gateway is told about the end of a sub-device's session, by reason. */
const errors: Readonly<
  Record<Exclude<DisconnectReason, "revoked" | "shutdown">, { readonly code: number; readonly message: string }>
> = {
  replaced: { code: 427, message: "device connect elsewhere" },
  deleted: { code: 521, message: "device deleted" },
  disabled: { code: 522, message: "device forbidden" },
  detached: noTopology
}

/** Tells a gateway what is wrong with the session of a sub-device. */
export const sessionError = (
  { code, message }: { readonly code: number; readonly message: string },
  name: SubDeviceName
): Pick<DownlinkMessage, "method" | "params"> => ({
  method: sessionErrorMethod,
  params: { code, message, data: nameOf(name) }
})

/** Keeps which sub-devices each gateway on this node carries, until the scope closes. */
export const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const sessions = yield* DeviceSessions
  const { sweep } = yield* PresenceTimes
  const gateways = new Map<DeviceSession, GatewayConnection>()
  /** The connection of the gateway that carries a session of a sub-device. */
  const carriers = new WeakMap<DeviceSession, GatewayConnection>()
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  yield* sessions.listen({
    detached: (session) => {
      const key = deviceKey(session.connection.device)
      const carrier = carriers.get(session)
      if (carrier?.carried.get(key) === session) carrier.carried.delete(key)
      const ended = gateways.get(session)
      if (ended === undefined) return
      ended.hasEnded = true
      gateways.delete(session)
      for (const carried of ended.carried.values()) runFork(sessions.detach(carried))
    }
  })

  /** Ends the sessions of those sub-devices that no longer belong to the gateway. */
  const compare = Effect.fnUntraced(function*(some: ReadonlyArray<DeviceSession>) {
    const attachments = yield* untilStored(
      store.attachmentsOf(some.map(({ connection }) => connection.device.deviceId))
    )
    const owners = new Map(attachments.map(({ gateway, subDevice }) => [subDevice.deviceId, gateway.deviceId]))
    const left = some.filter((session) => {
      const { device, gateway } = session.connection
      // What the topology said before a later session began says nothing of that one.
      return owners.get(device.deviceId) !== gateway?.deviceId && sessions.session(device.deviceId) === session
    })
    yield* Effect.forEach(left, ({ connection }) => close(connection, "detached"), {
      concurrency: "unbounded",
      discard: true
    })
  }, Effect.catchCause((cause) => Effect.logError("Sub-devices could not be compared with the topology", cause)))

  // Another node may remove a sub-device, and its notice may be lost.
  yield* Effect.suspend(() => {
    const all = [...gateways.values()].flatMap(({ carried }) => [...carried.values()])
    return Effect.forEach(Array.chunksOf(all, compared), compare, { discard: true })
  }).pipe(Periodic.every(sweep))

  /** Returns the connection behind a gateway's session; undefined: the session has ended. */
  const connectionOf = (gateway: DeviceSession): GatewayConnection | undefined => {
    const known = gateways.get(gateway)
    if (known !== undefined) return known
    if (sessions.session(gateway.connection.device.deviceId) !== gateway) return undefined
    // In Effect 4.0.6, who comes overtakes those who wait for a `Semaphore`.
    const inTurn = PartitionedSemaphore.makeUnsafe<DeviceSession>({ permits: 1 }).withPermit(gateway)
    const connection = { inTurn, carried: new Map(), hasEnded: false }
    gateways.set(gateway, connection)
    return connection
  }

  /** Brings a sub-device online through the gateway's connection, unless it is online through it already. */
  const carry = Effect.fnUntraced(
    function*(gateway: DeviceSession, carrier: GatewayConnection, subDevice: DeviceIdentity) {
      const key = deviceKey(subDevice)
      const known = carrier.carried.get(key)
      if (known !== undefined && sessions.session(subDevice.deviceId) === known) return
      let session: DeviceSession | undefined
      let closedFor: DisconnectReason | undefined
      const connection: DeviceConnection = {
        device: subDevice,
        ip: gateway.connection.ip,
        ...gateway.connection.transport === undefined ? {} : { transport: gateway.connection.transport },
        gateway: gateway.connection.device,
        endReason: () =>
          closedFor !== undefined
            ? disconnectSentences[closedFor]
            : carrier.hasEnded
            ? "the connection of its gateway has ended"
            : loggedOut,
        deliver: (message, acknowledged) => gateway.connection.deliver({ ...message, subDevice }, acknowledged),
        backlog: () => gateway.connection.backlog(),
        hearsShadow: (then) => gateway.connection.hearsShadow?.(then, subDevice) ?? true,
        close: Effect.fnUntraced(function*(reason) {
          // The gateway's connection ends as well and takes this session with it.
          // Sub-devices have no certificates.
          if (reason === "revoked" || reason === "shutdown") return
          closedFor = reason
          const gatewayId = gateway.connection.device.deviceId
          // A later connection of the gateway knows nothing of this session.
          if (sessions.session(gatewayId) === gateway) {
            yield* sessions.deliver(gatewayId, sessionError(errors[reason], subDevice))
          }
          if (session !== undefined) yield* sessions.detach(session)
        })
      }
      session = yield* sessions.attach(connection)
      carriers.set(session, carrier)
      carrier.carried.set(key, session)
      if (carrier.hasEnded || closedFor !== undefined) yield* sessions.detach(session)
    }
  )

  /** Returns the sub-device of this name that is online through the gateway's connection. */
  const find = (gateway: DeviceSession, name: SubDeviceName): DeviceIdentity | undefined =>
    gateways.get(gateway)?.carried.get(deviceKey(name))?.connection.device

  return { connectionOf, carry, find }
})
