/**
 * Bulk commands in memory.
 */
import {
  type BulkCommand,
  BulkCommandStore,
  type BulkCounts,
  type BulkCreated,
  type BulkDevice,
  type BulkDeviceState,
  bulkOrigin,
  type BulkScope,
  type BulkTurn,
  type Device,
  maxBulkDevices,
  maxRunningBulkCommands,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { matchingDevices, paginate, type StoredBulkCommand, type StoredBulkDevice, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: it finds devices and reads commands. */
export const layer: Layer.Layer<BulkCommandStore, never, Tables> = Layer.effect(
  BulkCommandStore,
  Effect.map(Tables, (tables) => make(tables))
)

const hasTurn = ({ state }: StoredBulkDevice): boolean => state === "to-ask" || state === "to-cancel"

const make = (tables: Tables["Service"]) => {
  const { bulkCommands, devices, ledger, nextId } = tables

  const view = ({ bulk, isCancelled, turns }: StoredBulkCommand): BulkCommand => ({
    ...bulk,
    status: isCancelled ? "cancelled" : turns > 0 ? "running" : "completed"
  })

  const ofProject = (projectId: ProjectId) =>
    [...bulkCommands.values()].filter(({ bulk }) => bulk.projectId === projectId)

  const progress = ({ deviceId, deviceName, messageId, reason, state }: StoredBulkDevice): BulkDevice => {
    const command = messageId === null ? undefined : ledger.get(deviceId, messageId)
    const states: Readonly<Record<StoredBulkDevice["state"], BulkDeviceState>> = {
      "to-ask": "pending",
      "asked": command?.state ?? "gone",
      "refused": "failed",
      "left-out": "cancelled",
      "to-cancel": command?.state ?? "gone"
    }
    return {
      deviceId,
      deviceName,
      state: states[state],
      messageId,
      code: command?.code ?? null,
      reason: state === "refused" ? reason : command?.message ?? ""
    }
  }

  const found = (projectId: ProjectId, scope: BulkScope): ReadonlyArray<Device> =>
    scope._tag === "Named"
      ? scope.deviceIds.map((deviceId) => devices.get(deviceId)!)
      : matchingDevices(tables, projectId, scope.filter)

  return BulkCommandStore.of({
    insert: (draft, scope) =>
      Effect.sync((): BulkCreated => {
        const { createdAt, projectId } = draft
        if (scope._tag === "Named") {
          const unknown = scope.deviceIds.filter((deviceId) => devices.get(deviceId)?.projectId !== projectId)
          if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
        }
        if (ofProject(projectId).filter(({ turns }) => turns > 0).length >= maxRunningBulkCommands) {
          return { _tag: "Busy" }
        }
        const chosen = found(projectId, scope)
        if (chosen.length === 0) return { _tag: "Empty" }
        if (chosen.length > maxBulkDevices) return { _tag: "TooLarge" }
        const stored: StoredBulkCommand = {
          bulk: { ...draft, bulkId: nextId(), total: chosen.length, updatedAt: createdAt },
          isCancelled: false,
          servedAt: createdAt,
          turns: chosen.length,
          devices: chosen.map(({ deviceId, deviceName }) => ({
            deviceId,
            deviceName,
            state: "to-ask",
            claimedUntil: 0,
            messageId: null,
            reason: ""
          }))
        }
        bulkCommands.set(stored.bulk.bulkId, stored)
        return { _tag: "Created", bulk: view(stored) }
      }),
    get: (projectId, bulkId) =>
      Effect.sync(() => {
        const stored = bulkCommands.get(bulkId)
        if (stored?.bulk.projectId !== projectId) return Option.none()
        const counts: Record<string, number> = {}
        for (const { state } of stored.devices.map(progress)) counts[state] = (counts[state] ?? 0) + 1
        return Option.some({ bulk: view(stored), counts: counts as BulkCounts })
      }),
    list: (projectId, page) => Effect.sync(() => paginate(ofProject(projectId).map(view), page)),
    countUnderWay: (projectId) => Effect.sync(() => ofProject(projectId).filter(({ turns }) => turns > 0).length),
    devices: (bulkId, state, { page, pageSize }) =>
      Effect.sync(() => {
        const all = (bulkCommands.get(bulkId)?.devices ?? []).map(progress)
          .filter((device) => state === undefined || device.state === state)
        return { items: all.slice((page - 1) * pageSize, page * pageSize), total: all.length }
      }),
    cancel: (bulkId, at) =>
      Effect.sync(() => {
        const stored = bulkCommands.get(bulkId)
        if (stored === undefined || stored.isCancelled) return false
        stored.isCancelled = true
        stored.bulk = { ...stored.bulk, updatedAt: at }
        for (const device of stored.devices) {
          if (device.state === "to-ask") {
            // Whoever has the turn may have ended before it stored what came of it.
            device.messageId = ledger.ofOrigin(device.deviceId, bulkOrigin(bulkId))?.messageId ?? null
            device.state = device.messageId === null ? "left-out" : "to-cancel"
          }
          if (device.state === "asked") device.state = "to-cancel"
          device.claimedUntil = 0
        }
        stored.turns = stored.devices.filter(hasTurn).length
        return true
      }),
    claim: ({ again, bulks, now, perBulk }) =>
      Effect.sync(() =>
        [...bulkCommands.values()].filter(({ turns }) => turns > 0)
          .sort((a, b) => a.servedAt - b.servedAt)
          .slice(0, bulks)
          .flatMap((stored) => {
            stored.servedAt = now
            const turns: Array<BulkTurn> = []
            for (const [place, device] of stored.devices.entries()) {
              if (turns.length === perBulk) break
              const isTaken = device.claimedUntil > now && device.claimedUntil <= now + 2 * (again - now)
              if (!hasTurn(device) || isTaken) continue
              device.claimedUntil = again
              turns.push({ bulk: view(stored), place, deviceId: device.deviceId, cancels: device.messageId })
            }
            return turns
          })
      ),
    settle: (outcomes, at) =>
      Effect.sync(() => {
        for (const { messageId, reason, turn } of outcomes) {
          const stored = bulkCommands.get(turn.bulk.bulkId)
          const device = stored?.devices[turn.place]
          if (stored === undefined || device === undefined) continue
          const before = turn.cancels === null ? "to-ask" : "to-cancel"
          // The bulk command was cancelled while the device was asked.
          const isLate = device.state === "left-out" && before === "to-ask" && messageId !== null
          if (device.state !== before && !isLate) continue
          stored.turns += isLate ? 1 : -1
          device.state = isLate ? "to-cancel" : messageId === null ? "refused" : "asked"
          device.claimedUntil = 0
          device.messageId = messageId
          device.reason = reason
          stored.bulk = { ...stored.bulk, updatedAt: at }
        }
      }),
    prune: ({ before, limit }) =>
      Effect.sync(() => {
        const old = [...bulkCommands.values()].filter(({ bulk, turns }) =>
          turns === 0 && bulk.updatedAt + bulk.ttl * 1000 < before
        ).slice(0, limit)
        for (const { bulk } of old) {
          bulkCommands.delete(bulk.bulkId)
        }
        return old.length
      })
  })
}
