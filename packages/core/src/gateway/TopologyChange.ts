/**
 * What follows a change of a topology: notices to gateways, domain events, and
 * the end of sessions.
 */
import { Array, Clock, Effect } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { LifecycleHook } from "../device/DeviceLifecycle.ts"
import type { EventBus } from "../events/EventBus.ts"
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

/** Publishes that sub-devices were attached or detached. */
export const publishTopology = (
  events: EventBus["Service"],
  attachments: ReadonlyArray<Attachment>,
  action: "create" | "delete"
) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (at) =>
      events.publish(
        byGateway(attachments).map(({ gateway, subDevices }) => ({
          _tag: "TopologyChanged",
          device: gateway,
          at,
          action,
          subDevices
        }))
      )
  )

/**
 * Ends the sessions of detached sub-devices, publishes the change, and tells
 * their gateways, unless the gateway itself has asked for it (`isOwnWish`).
 */
export const announceDetached = Effect.fnUntraced(function*(
  sessions: DeviceSessions["Service"],
  events: EventBus["Service"],
  attachments: ReadonlyArray<Attachment>,
  isOwnWish = false
) {
  if (attachments.length === 0) return
  yield* sessions.cutOff(attachments.map(({ subDevice }) => subDevice.deviceId), "detached")
  if (!isOwnWish) yield* notifyGateways(sessions, attachments, "delete")
  yield* publishTopology(events, attachments, "delete")
})

/** Attaches all or none, as the store does. Announces it to gateways that lose a sub-device and as an event. */
export const attachSubDevices = (
  store: TopologyStore["Service"],
  sessions: DeviceSessions["Service"],
  events: EventBus["Service"]
) =>
  Effect.fnUntraced(function*({ by, gatewayId, subDevices }: {
    readonly gatewayId: DeviceId
    readonly subDevices: ReadonlyArray<DeviceIdentity>
    readonly by: AttachedBy
  }) {
    const outcome = yield* store.attach({
      gatewayId,
      subDeviceIds: subDevices.map(({ deviceId }) => deviceId),
      by,
      at: yield* Clock.currentTimeMillis
    })
    if (outcome._tag !== "Attached") return outcome
    yield* announceDetached(sessions, events, outcome.moved)
    const attachments = (yield* store.attachmentsOf(outcome.added)).filter(({ gateway }) =>
      gateway.deviceId === gatewayId
    )
    yield* publishTopology(events, attachments, "create")
    return { _tag: "Attached", attachments } as const
  })

/** Tells gateways when their sub-devices are enabled, disabled, unbound or deleted. */
export const topologyHook = (
  store: TopologyStore["Service"],
  sessions: DeviceSessions["Service"],
  events: EventBus["Service"]
): LifecycleHook => {
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

  return {
    stage: "feature",
    enabled: notify("enable"),
    disabled: notify("disable"),
    unbound: (devices, at) =>
      Effect.flatMap(
        store.detach({ subDeviceIds: idsOf(devices), state: "closed", at }),
        (detached) => announceDetached(sessions, events, detached)
      ),
    deleting: Effect.fnUntraced(function*(devices) {
      const above = yield* store.attachmentsOf(idsOf(devices))
      const ended = [...above, ...yield* below(devices)]
      return () => Effect.andThen(notifyGateways(sessions, above, "delete"), publishTopology(events, ended, "delete"))
    })
  }
}
