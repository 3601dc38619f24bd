/**
 * What the cloud knows of a device: for the expectations of a test.
 */
import {
  type Command,
  Commands,
  type CommandState,
  type Device,
  Devices,
  type DeviceStatus,
  type DomainEvent,
  Feed,
  History,
  type HistoryRange,
  type Json,
  type ProjectId,
  Shadows
} from "@device-cloud/core"
import { Effect, Queue, Stream } from "effect"
import { eventually } from "./Eventually.ts"

type Reference = Pick<Device, "projectId" | "deviceId">

/** The oldest thousand entries. */
const fromTheStart: HistoryRange = { start: 0, end: 8.64e15, limit: 1000, order: "asc" }

/** The device as it is now. Fails with `DeviceNotFound`. */
export const device = Effect.fnUntraced(function*({ deviceId, projectId }: Reference) {
  return (yield* (yield* Devices).get(projectId, { deviceId })).device
})

/** The last reported value of each property, by property id. Fails with `DeviceNotFound`. */
export const reported = Effect.fnUntraced(function*({ deviceId, projectId }: Reference) {
  const { shadow } = yield* (yield* Shadows).get(projectId, deviceId)
  return Object.fromEntries(Object.entries(shadow.reported).map(([id, { value }]): [string, Json] => [id, value]))
})

/** The first thousand reported values of a property, oldest first. Fails with `DeviceNotFound`. */
export const samples = Effect.fnUntraced(function*({ deviceId, projectId }: Reference, propertyId: string) {
  const entries = yield* (yield* History).properties(projectId, deviceId, propertyId, fromTheStart)
  return entries.map(({ value }) => value)
})

/** The first thousand occurrences of an event, oldest first; without an id, of all events. Fails with `DeviceNotFound`. */
export const events = Effect.fnUntraced(function*({ deviceId, projectId }: Reference, eventId?: string) {
  return yield* (yield* History).events(projectId, deviceId, eventId, fromTheStart)
})

/** Waits until the device has the status, and returns the device. Dies after 30 seconds. */
export const untilStatus = (reference: Reference, status: DeviceStatus) =>
  eventually(device(reference), { until: (now) => now.status === status })

/** Waits until the command has the state, and returns the command. Dies after 30 seconds. */
export const untilState = Effect.fnUntraced(
  function*(
    { deviceId, messageId, projectId }: Pick<Command, "projectId" | "deviceId" | "messageId">,
    state: CommandState
  ) {
    const commands = yield* Commands
    return yield* eventually(commands.get(projectId, deviceId, messageId), { until: (now) => now.state === state })
  }
)

/** Emits the events of the project from now on, in order, until the scope closes. */
export const follow = Effect.fnUntraced(function*(projectId: ProjectId) {
  const events = yield* Queue.unbounded<DomainEvent>()
  yield* (yield* Feed).follow(projectId, {
    hear: ({ event }) => void Queue.offerUnsafe(events, event),
    missed: () => {}
  })
  return Stream.fromQueue(events)
})
