/**
 * Nothing of a project is seen by another one: neither its devices, nor what happens to
 * them, nor what is sent to them.
 */
import { type DeviceId, DeviceStore, feedStart, FeedStore, type ProjectId, projectOf } from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { Fleet } from "../Fleet.ts"
import type { Inspection, Invariant } from "../Witness.ts"

export const name = "nothing leaks between projects"

export const make = ({ read, violated }: Inspection, fleet: Fleet): Invariant => {
  const projects = new Map<DeviceId, ProjectId>()
  for (const { own, subDevices } of fleet.devices.values()) {
    for (const { identity } of [own, ...subDevices]) projects.set(identity.deviceId, identity.projectId)
  }

  return {
    recorded: ({ event }) => {
      const { device } = event
      if (device !== null && projects.get(device.deviceId) !== projectOf(event)) {
        violated(name, `an event of ${device.deviceName} is in project ${projectOf(event)}`)
      }
    },
    trespassed: ({ deviceName }, wasFound) => {
      if (wasFound) violated(name, `${deviceName} was found with the key of another project`)
    },
    delivered: (link, device, { id, method }) => {
      const expected = link.device.projectId
      if (device === undefined || device.projectId !== expected) {
        violated(name, `${link.device.deviceName} got ${method} ${id} of another project`)
      }
    },
    finished: () => {
      for (const { projectId } of fleet.projects) {
        const { entries } = read(
          Effect.flatMap(
            Effect.service(FeedStore),
            (feed) => feed.read({ projectId, after: feedStart, limit: 10_000 })
          )
        )
        for (const { event } of entries) {
          if (projectOf(event) !== projectId) violated(name, `the feed of ${projectId} has an event of another project`)
        }
        const other = fleet.projects.find((each) => each.projectId !== projectId)!
        for (const [deviceId, owner] of projects) {
          if (owner !== projectId) continue
          const found = read(
            Effect.flatMap(Effect.service(DeviceStore), (store) => store.get(other.projectId, { deviceId }))
          )
          if (Option.isSome(found)) violated(name, `device ${deviceId} of ${projectId} is in ${other.projectId}`)
        }
      }
    }
  }
}
