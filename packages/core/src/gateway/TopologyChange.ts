/**
 * What belongs to a change of a topology: domain events, notices to gateways, and
 * the end of sessions.
 */
import { Array, Clock, Effect } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { LifecycleHook } from "../device/DeviceLifecycle.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { Feed } from "../feed/Feed.ts"
import type { DeviceSessions } from "../connection/DeviceSessions.ts"
import type { Attachment, SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import type { AttachedBy } from "./TopologyClaim.ts"
import type { TopologyStore } from "./TopologyStore.ts"

/** The `status` of a change in `thing.topo.change` (docs/protocol/gateways.md). */
const statusOf = { create: 0, delete: 1, enable: 2, disable: 8 } as const

/** Sub-devices in one message to a gateway. */
const maxPerMessage = 30

export const nameOf = ({ deviceName, productKey }: SubDeviceName) => ({ deviceName, productKey })

/** Groups the sub-devices by their gateway. */
const byGateway = (attachments: ReadonlyArray<Attachment>) =>
  Object.values(Array.groupBy(attachments, ({ gateway }) => gateway.deviceId)).map((ofOne) => ({
    gateway: ofOne[0].gateway,
    subDevices: ofOne.map(({ subDevice }) => subDevice)
  }))

/** Tells the gateways what the cloud has done with their sub-devices, at most 30 in one message. */
export const notifyGateways = (
  sessions: DeviceSessions["Service"],
  attachments: ReadonlyArray<Attachment>,
  change: keyof typeof statusOf
) =>
  Effect.forEach(
    byGateway(attachments).flatMap(({ gateway, subDevices }) =>
      Array.chunksOf(subDevices, maxPerMessage).map((some) => ({ gateway, some }))
    ),
    ({ gateway, some }) =>
      sessions.deliverAnywhere(gateway.deviceId, {
        method: "thing.topo.change",
        params: { status: statusOf[change], subList: some.map(nameOf) }
      }),
    { discard: true }
  )

/** The events of sub-devices that are attached or detached. `at`: Unix milliseconds. */
export const topologyEvents =
  (action: "create" | "delete", at: number) => (attachments: ReadonlyArray<Attachment>): ReadonlyArray<DomainEvent> =>
    byGateway(attachments).map(({ gateway, subDevices }) => ({
      _tag: "TopologyChanged",
      device: gateway,
      at,
      action,
      subDevices: subDevices.map(({ deviceId, deviceName, productKey }) => ({ deviceId, productKey, deviceName }))
    }))

/**
 * Ends the sessions of detached sub-devices and tells their gateways, unless the
 * gateway itself has asked for it (`isOwnWish`).
 */
export const announceDetached = Effect.fnUntraced(function*(
  sessions: DeviceSessions["Service"],
  attachments: ReadonlyArray<Attachment>,
  isOwnWish = false
) {
  if (attachments.length === 0) return
  yield* sessions.cutOff(attachments.map(({ subDevice }) => subDevice.deviceId), "detached")
  if (!isOwnWish) yield* notifyGateways(sessions, attachments, "delete")
})

/** Attaches all or none, as the store does, with the events of it. Tells gateways that lose a sub-device. */
export const attachSubDevices = (
  store: TopologyStore["Service"],
  sessions: DeviceSessions["Service"],
  feed: Feed["Service"]
) =>
  Effect.fnUntraced(function*({ by, gatewayId, subDevices }: {
    readonly gatewayId: DeviceId
    readonly subDevices: ReadonlyArray<DeviceIdentity>
    readonly by: AttachedBy
  }) {
    const at = yield* Clock.currentTimeMillis
    const subDeviceIds = subDevices.map(({ deviceId }) => deviceId)
    const attach = Effect.gen(function*() {
      const outcome = yield* store.attach({ gatewayId, subDeviceIds, by, at })
      if (outcome._tag !== "Attached") return outcome
      const found = yield* store.attachmentsOf(outcome.added)
      return { ...outcome, attachments: found.filter(({ gateway }) => gateway.deviceId === gatewayId) }
    })
    const outcome = yield* feed.commit(attach, (outcome) =>
      outcome._tag === "Attached"
        ? [...topologyEvents("delete", at)(outcome.moved), ...topologyEvents("create", at)(outcome.attachments)]
        : [])
    if (outcome._tag !== "Attached") return outcome
    yield* announceDetached(sessions, outcome.moved)
    return { _tag: "Attached", attachments: outcome.attachments } as const
  })

/** Tells gateways when their sub-devices are enabled, disabled, unbound or deleted, and records that they are detached. */
export const topologyHooks = (
  store: TopologyStore["Service"],
  sessions: DeviceSessions["Service"],
  feed: Feed["Service"]
): ReadonlyArray<LifecycleHook> => {
  const idsOf = (devices: ReadonlyArray<DeviceIdentity>) => devices.map(({ deviceId }) => deviceId)

  const notify = (change: "enable" | "disable") => (devices: ReadonlyArray<DeviceIdentity>) =>
    Effect.flatMap(store.attachmentsOf(idsOf(devices)), (attachments) => notifyGateways(sessions, attachments, change))

  /** Returns the attachments of sub-devices to those of the devices that are gateways. */
  const below = Effect.fnUntraced(function*(devices: ReadonlyArray<DeviceIdentity>) {
    const amounts = yield* store.amounts(idsOf(devices))
    const gateways = devices.filter(({ deviceId }) => amounts.has(deviceId))
    return (yield* Effect.forEach(gateways, (gateway) =>
      Effect.map(
        store.subDevices(gateway.deviceId),
        (subDevices) => subDevices.map((subDevice): Attachment => ({ gateway, subDevice }))
      ))).flat()
  })

  return [
    {
      stage: "feature",
      enabled: notify("enable"),
      disabled: notify("disable"),
      unbound: (devices, at) =>
        Effect.flatMap(
          feed.commit(
            store.detach({ subDeviceIds: idsOf(devices), state: "closed", at }),
            topologyEvents("delete", at)
          ),
          (detached) => announceDetached(sessions, detached)
        ),
      deleting: (devices) =>
        Effect.map(
          store.attachmentsOf(idsOf(devices)),
          (above) => () => notifyGateways(sessions, above, "delete")
        )
    },
    {
      stage: "record",
      deleting: Effect.fnUntraced(function*(devices) {
        const ended = [...yield* store.attachmentsOf(idsOf(devices)), ...yield* below(devices)]
        return (_, at) => feed.append(topologyEvents("delete", at)(ended))
      })
    }
  ]
}
