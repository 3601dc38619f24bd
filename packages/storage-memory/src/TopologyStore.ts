/**
 * Sub-devices of gateways and their add-sessions, in memory.
 */
import {
  type AddSession,
  admits,
  type AttachAttempt,
  type Attachment,
  claimAfter,
  type DeviceId,
  deviceIdentity,
  deviceKey,
  judgeAttempt,
  maxSubDevices,
  TopologyStore
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { deviceDetail, Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses devices that its tables do not have. */
export const layer: Layer.Layer<TopologyStore, never, Tables> = Layer.effect(
  TopologyStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (tables: Tables["Service"]) => {
  const { addSessions, deviceNames, devices, gateways, topologyClaims } = tables

  const identity = (deviceId: DeviceId) => {
    const device = devices.get(deviceId)
    return device === undefined ? undefined : deviceIdentity(deviceDetail(tables, device))
  }

  const attachment = (deviceId: DeviceId): Attachment | undefined => {
    const gatewayId = gateways.get(deviceId)
    const gateway = gatewayId === undefined ? undefined : identity(gatewayId)
    const subDevice = identity(deviceId)
    return gateway === undefined || subDevice === undefined ? undefined : { gateway, subDevice }
  }

  const openSession = (gatewayId: DeviceId) =>
    [...addSessions.values()].find(({ endedAt, session }) => session.gatewayId === gatewayId && endedAt === null)

  const end = (sessionId: string, at: number): AddSession => {
    const stored = addSessions.get(sessionId)!
    addSessions.set(sessionId, { ...stored, endedAt: at })
    return stored.session
  }

  return TopologyStore.of({
    attach: ({ at, by, gatewayId, subDeviceIds: ids }) =>
      Effect.sync(() => {
        const distinct = [...new Set(ids)]
        if ([gatewayId, ...distinct].some((deviceId) => !devices.has(deviceId))) return { _tag: "Gone" }
        const added = distinct.filter((id) => gateways.get(id) !== gatewayId)
        const open = openSession(gatewayId)
        const attempts = added.map((subDeviceId): AttachAttempt => ({
          by,
          gatewayId,
          subDeviceId,
          isForeign: gateways.get(subDeviceId) !== undefined,
          isInvited: open !== undefined && admits(open.session, devices.get(subDeviceId)!.productKey),
          claim: topologyClaims.get(subDeviceId)
        }))
        for (const attempt of attempts) {
          const verdict = judgeAttempt(attempt)
          if (verdict === "accepted") continue
          return { _tag: verdict === "spent" ? "Spent" : "OtherGateway", deviceId: attempt.subDeviceId }
        }
        if (gateways.subDevicesOf(gatewayId).length + added.length > maxSubDevices) return { _tag: "Full" }
        const moved = added.flatMap((id) => attachment(id) ?? [])
        for (const attempt of attempts) topologyClaims.set(attempt.subDeviceId, claimAfter(attempt, at))
        for (const id of added) {
          gateways.set(id, gatewayId)
          if (open !== undefined && admits(open.session, devices.get(id)!.productKey)) open.members.add(id)
        }
        return { _tag: "Attached", added, moved }
      }),
    detach: ({ at, gatewayId, state, subDeviceIds: ids }) =>
      Effect.sync(() =>
        ids.flatMap((id) => {
          const known = attachment(id)
          if (known === undefined || (gatewayId !== undefined && known.gateway.deviceId !== gatewayId)) return []
          gateways.delete(id)
          const provedAt = topologyClaims.get(id)?.provedAt ?? 0
          topologyClaims.set(id, { gatewayId: known.gateway.deviceId, state, provedAt, changedAt: at })
          return [known]
        })
      ),
    subDevices: (gatewayId) => Effect.sync(() => gateways.subDevicesOf(gatewayId).flatMap((id) => identity(id) ?? [])),
    amounts: (gatewayIds) =>
      Effect.sync(() =>
        new Map(
          gatewayIds.map((id): [DeviceId, number] => [id, gateways.subDevicesOf(id).length]).filter(([, count]) =>
            count > 0
          )
        )
      ),
    attachments: (names) =>
      Effect.sync(() =>
        names.map(({ deviceName, productKey }) => {
          const deviceId = deviceNames.get(deviceKey({ productKey, deviceName }))
          return Option.fromUndefinedOr(deviceId === undefined ? undefined : attachment(deviceId))
        })
      ),
    attachmentsOf: (ids) => Effect.sync(() => ids.flatMap((id) => attachment(id) ?? [])),
    openSession: (session) =>
      Effect.sync(() => {
        if (!devices.has(session.gatewayId)) return Option.none()
        const replaced = openSession(session.gatewayId)
        if (replaced !== undefined) end(replaced.session.sessionId, session.startedAt)
        addSessions.set(session.sessionId, { session, endedAt: null, members: new Set() })
        return Option.map(Option.fromUndefinedOr(replaced), ({ session }) => session)
      }),
    session: (gatewayId, sessionId) =>
      Effect.sync(() => {
        const stored = addSessions.get(sessionId)
        if (stored?.session.gatewayId !== gatewayId) return Option.none()
        const members = [...stored.members].flatMap((id) => identity(id) ?? [])
        return Option.some({ session: stored.session, isOpen: stored.endedAt === null, members })
      }),
    endSession: (gatewayId, sessionId, at) =>
      Effect.sync(() => {
        if (openSession(gatewayId)?.session.sessionId !== sessionId) return false
        end(sessionId, at)
        return true
      }),
    endDue: ({ limit, now }) =>
      Effect.sync(() =>
        [...addSessions.values()].filter(({ endedAt, session }) => endedAt === null && session.endsAt <= now)
          .slice(0, limit).map(({ session }) => end(session.sessionId, now))
      ),
    openSessions: (gatewayId) =>
      Effect.sync(() =>
        [...addSessions.values()].flatMap(({ endedAt, session }) =>
          endedAt === null && (gatewayId === undefined || session.gatewayId === gatewayId) ? [session] : []
        )
      ),
    forgetSessions: (endedBefore) =>
      Effect.sync(() => {
        for (const [sessionId, { endedAt }] of addSessions) {
          if (endedAt !== null && endedAt < endedBefore) addSessions.delete(sessionId)
        }
      })
  })
}
