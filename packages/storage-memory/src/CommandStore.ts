/**
 * The commands of devices in memory.
 */
import {
  type Command,
  CommandStore,
  type Enqueue,
  type Enqueued,
  maxWaiting,
  type NotEnqueued
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { modifyShadow } from "./ShadowStore.ts"
import { neverOwned, paginate, Tables } from "./Tables.ts"

/** Part of the group that is replaced together: a command may change the shadow. */
export const layer: Layer.Layer<CommandStore, never, Tables> = Layer.effect(
  CommandStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = (tables: Tables["Service"]) => {
  const { connections, devices, ledger, ownerships } = tables
  let lastId = 0

  const enqueue = (
    { command: { origin, synchronous = false, ...command }, desire, epoch }: Enqueue
  ): Enqueued | NotEnqueued => {
    const { createdAt, deviceId } = command
    const known = origin === undefined ? undefined : ledger.ofOrigin(deviceId, origin)
    if (known !== undefined) return { command: known, previous: undefined, owner: undefined }
    const device = devices.get(deviceId)
    if (device === undefined) return "no-device"
    if (!device.enabled) return "disabled"
    if (ledger.countOpen(deviceId) >= maxWaiting) return "full"
    const ownership = ownerships.get(deviceId) ?? neverOwned
    const connection = connections.get(deviceId)
    const owner = connection && { nodeId: connection.nodeId, epoch: ownership.epoch }
    const isSent = owner !== undefined && owner.epoch === epoch
    const stored: Command = {
      messageId: ++lastId,
      code: null,
      message: "",
      data: {},
      synchronous,
      state: isSent ? "sent" : "queued",
      deliveries: isSent ? 1 : 0,
      updatedAt: createdAt,
      // A spread is fast only after the other members.
      ...command
    }
    ledger.put(stored)
    ownerships.set(deviceId, { ...ownership, lastCommand: stored.messageId })
    if (origin !== undefined) ledger.name(stored, origin)
    if (desire !== undefined) modifyShadow(tables, { deviceId, modify: desire })
    return { command: stored, previous: ownership.lastCommand, owner }
  }

  return CommandStore.of({
    enqueue: (items) => Effect.sync(() => items.map(enqueue)),
    advance: (steps) => Effect.sync(() => ledger.advance(steps)),
    unfinished: ({ after, deviceId, limit, now }) =>
      Effect.sync(() =>
        ledger.openOf(deviceId).filter(({ expiresAt, messageId }) => messageId > after && expiresAt > now).slice(
          0,
          limit
        )
      ),
    get: (deviceId, messageId) => Effect.sync(() => Option.fromUndefinedOr(ledger.get(deviceId, messageId))),
    list: (deviceId, page) => Effect.sync(() => paginate(ledger.of(deviceId), page)),
    cancel: (deviceId, messageId, at) =>
      Effect.sync(() => {
        const command = ledger.get(deviceId, messageId)
        if (command?.state === "queued") ledger.put({ ...command, state: "cancelled", updatedAt: at })
        return Option.fromUndefinedOr(ledger.get(deviceId, messageId))
      }),
    expire: ({ grace, limit, now }) =>
      Effect.sync(() => {
        const due = [...ledger.open()].filter(({ expiresAt, state }) =>
          expiresAt + (state === "queued" ? 0 : grace) <= now
        ).slice(0, limit)
        for (const command of due) ledger.put({ ...command, state: "expired", updatedAt: now })
        return due.map(({ projectId }) => projectId)
      }),
    prune: ({ before, limit }) => Effect.sync(() => ledger.prune(before, limit))
  })
}
