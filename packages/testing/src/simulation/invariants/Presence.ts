/**
 * The stored status of a device agrees with its connections, within the times that
 * docs/ownership.md gives (P1, P2, E4), and a status version grows by one.
 */
import type { DeviceId } from "@device-cloud/core"
import type { FleetDevice } from "../FleetDevice.ts"
import type { Link } from "../Link.ts"
import type { Inspection, Invariant } from "../Witness.ts"

export const agrees = "presence agrees with connections"
export const notFalse = "no connected device goes offline"
export const grows = "status versions grow by one"

/** How long after a sweep the cloud may take, milliseconds; a node is missed after 11 seconds. */
const rest = 6000

/** How long before and after a change of its status a connection must have lasted to make it false, milliseconds. */
const margin = 2000

/** How long the links of a device are remembered after their end, milliseconds. */
const remembered = 180_000

interface Stored {
  status: "online" | "offline"
  version: number
}

interface Past {
  readonly link: Link
  endedAt: number | undefined
}

export const make = (
  { time, violated, wasDisturbed }: Inspection,
  devices: ReadonlyArray<FleetDevice>,
  /** Between two sweeps of a node, milliseconds. */
  sweep: number
): Invariant => {
  const settles = sweep + rest
  const stored = new Map<DeviceId, Stored>()
  const past = new Map<DeviceId, Array<Past>>()
  /** Since when no node holds a connection of the device, Unix milliseconds. */
  const freeSince = new Map<DeviceId, number>()
  const gone = new Set<DeviceId>()
  /** The device, also by its sub-devices. */
  const byId = new Map(
    devices.flatMap((device) =>
      [device, ...device.subDevices].map(({ thing }) => [thing.identity.deviceId, device] as const)
    )
  )
  /** Devices to look at: all but those that were found right, with their sub-devices, and have not changed since. */
  const unsettled = new Set(devices)

  const changed = (deviceId: DeviceId) => {
    const device = byId.get(deviceId)
    if (device !== undefined) unsettled.add(device)
  }

  const holds = (links: ReadonlyArray<Past>) => links.some(({ endedAt }) => endedAt === undefined)

  const isCalm = (place: number | undefined, from: number) => !wasDisturbed(place, from, time.now)

  /** Returns whether the device is online, as it must be; false: it is too early to tell, too. */
  const isOnline = (deviceId: DeviceId, name: string, since: number, { node, isHeld }: Link): boolean => {
    const from = time.now - settles
    if (since > from || !isHeld || gone.has(deviceId) || !isCalm(node.place, from - 10_000)) return false
    if (stored.get(deviceId)?.status === "online") return true
    violated(agrees, `${name} is connected to ${node.nodeId} since ${since}, and is not online`)
    return false
  }

  /** Returns whether the device is not online, as it must not be; false: it is too early to tell, too. */
  const isOffline = (deviceId: DeviceId, name: string, since: number | undefined): boolean => {
    if (since === undefined || since > time.now - settles || gone.has(deviceId)) return false
    // Somebody must be there to set it offline.
    if (!isCalm(undefined, time.now - 2 * settles)) return false
    if (stored.get(deviceId)?.status !== "online") return true
    violated(agrees, `${name} left at ${since}, and is online`)
    return false
  }

  return {
    deleted: ({ deviceId }) => void gone.add(deviceId),
    attached: (link) => {
      const { deviceId } = link.device
      changed(deviceId)
      const links = (past.get(deviceId) ?? []).filter(({ endedAt = time.now }) => endedAt > time.now - remembered)
      past.set(deviceId, [...links, { link, endedAt: undefined }])
      freeSince.delete(deviceId)
    },
    ended: (link) => {
      const { deviceId } = link.device
      changed(deviceId)
      const links = past.get(deviceId) ?? []
      for (const each of links) if (each.link === link) each.endedAt = time.now
      if (!holds(links)) freeSince.set(deviceId, time.now)
    },
    recorded: ({ event }) => {
      if (event._tag !== "DeviceStatusChanged") return
      const { at, device: { deviceId, deviceName }, status, version } = event
      const before = stored.get(deviceId)
      if (version !== (before?.version ?? 0) + 1) {
        violated(grows, `the status of ${deviceName} has version ${version} after ${before?.version ?? 0}`)
      }
      stored.set(deviceId, { status, version })
      changed(deviceId)
      if (status === "online" || gone.has(deviceId)) return
      // An earlier connection counts no more, even if its node does not know that yet.
      const connected = (past.get(deviceId) ?? []).findLast(({ link }) => link.attachedAt! <= at)
      if (connected === undefined || connected.link.attachedAt! >= at - margin) return
      if ((connected.endedAt ?? at + 2 * margin) <= at + margin) return
      if (wasDisturbed(undefined, at - 2 * settles, at)) return
      violated(notFalse, `${deviceName} went offline at ${at} and was connected to ${connected.link.node.nodeId}`)
    },
    minute: () => {
      for (const device of unsettled) {
        const { subDevices, thing: { identity: { deviceId, deviceName } } } = device
        const { connection } = device
        const since = freeSince.get(deviceId)
        let isRight = connection !== undefined && isOnline(deviceId, deviceName, connection.since, connection.link) ||
          isOffline(deviceId, deviceName, since)
        for (const { onlineSince, thing: { identity } } of subDevices) {
          const isSubRight = connection === undefined
            ? isOffline(identity.deviceId, identity.deviceName, since)
            : onlineSince !== undefined &&
              isOnline(identity.deviceId, identity.deviceName, onlineSince, connection.link)
          isRight &&= isSubRight
        }
        if (isRight) unsettled.delete(device)
      }
    }
  }
}
