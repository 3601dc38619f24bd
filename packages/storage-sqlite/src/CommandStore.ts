/**
 * The commands of devices on SQLite.
 */
import {
  type Command,
  CommandStore,
  type DeviceId,
  type Enqueue,
  type Enqueued,
  maxWaiting,
  type NotEnqueued,
  type ProjectId
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { advance, commandFromRow, type CommandRow } from "./CommandRow.ts"
import { pageOf } from "./Paging.ts"
import { modifyShadow } from "./ShadowRow.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: a command may change the shadow, and presence knows the latest one. */
export const layer: Layer.Layer<CommandStore, never, Sqlite> = Layer.effect(
  CommandStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface TargetRow {
  readonly enabled: number
  readonly waiting: number
  readonly node_id: string | null
  readonly epoch: number | null
  readonly last_command: number | null
}

const make = (sql: Sqlite["Service"]) => {
  const find = (deviceId: DeviceId, messageId: number): Option.Option<Command> =>
    Option.map(
      Option.fromUndefinedOr(
        sql.get<CommandRow>("SELECT * FROM command WHERE message_id = ? AND device_id = ?", [messageId, deviceId])
      ),
      commandFromRow
    )

  const enqueue = ({ command, desire, epoch }: Enqueue): Enqueued | NotEnqueued => {
    const { createdAt, deviceId, expiresAt, origin, params, projectId, serviceId, synchronous = false, userTopic } =
      command
    const known = origin === undefined
      ? undefined
      : sql.get<CommandRow>("SELECT * FROM command WHERE device_id = ? AND origin = ?", [deviceId, origin])
    if (known !== undefined) return { command: commandFromRow(known), previous: undefined, owner: undefined }
    const target = sql.get<TargetRow>(
      `SELECT enabled, node_id, epoch, last_command, (
          SELECT count(*) FROM command WHERE command.device_id = device.device_id AND is_open
        ) AS waiting
        FROM device LEFT JOIN presence USING (device_id) WHERE device.device_id = ?`,
      [deviceId]
    )
    if (target === undefined) return "no-device"
    if (target.enabled === 0) return "disabled"
    if (target.waiting >= maxWaiting) return "full"
    const owner = target.node_id === null || target.epoch === null
      ? undefined
      : { nodeId: target.node_id, epoch: target.epoch }
    const isSent = owner !== undefined && owner.epoch === epoch
    const stored = commandFromRow(
      sql.get<CommandRow>(
        `INSERT INTO command (project_id, device_id, origin, service_id, user_topic, params, synchronous, state,
            deliveries, created_at, expires_at, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`,
        [
          projectId,
          deviceId,
          origin ?? null,
          serviceId,
          userTopic,
          JSON.stringify(params),
          synchronous,
          isSent ? "sent" : "queued",
          isSent ? 1 : 0,
          createdAt,
          expiresAt,
          createdAt
        ]
      )!
    )
    sql.run(
      `INSERT INTO presence (device_id, last_command) VALUES (?, ?)
        ON CONFLICT (device_id) DO UPDATE SET last_command = excluded.last_command`,
      [deviceId, stored.messageId]
    )
    if (desire !== undefined) modifyShadow(sql, { deviceId, modify: desire })
    return { command: stored, previous: target.last_command ?? 0, owner }
  }

  return CommandStore.of({
    enqueue: (items) => sql.write("CommandStore.enqueue", () => items.map(enqueue)),
    advance: (steps) => sql.write("CommandStore.advance", () => advance(sql, steps)),
    unfinished: ({ after, deviceId, limit, now }) =>
      sql.read("CommandStore.unfinished", () =>
        sql.all<CommandRow>(
          `SELECT * FROM command WHERE device_id = ? AND is_open AND message_id > ? AND expires_at > ?
            ORDER BY message_id LIMIT ?`,
          [deviceId, after, now, limit]
        ).map(commandFromRow)),
    get: (deviceId, messageId) => sql.read("CommandStore.get", () => find(deviceId, messageId)),
    list: (deviceId, page) =>
      sql.read("CommandStore.list", () => {
        const { items, total } = pageOf<CommandRow>(sql, {
          table: "command",
          where: "device_id = ?",
          values: [deviceId],
          order: "created_at DESC, message_id DESC",
          page
        })
        return { items: items.map(commandFromRow), total }
      }),
    cancel: (deviceId, messageId, at) =>
      sql.write("CommandStore.cancel", () => {
        sql.run(
          `UPDATE command SET state = 'cancelled', updated_at = ?
            WHERE message_id = ? AND device_id = ? AND state = 'queued'`,
          [at, messageId, deviceId]
        )
        return find(deviceId, messageId)
      }),
    expire: ({ grace, limit, now }) =>
      sql.write("CommandStore.expire", () =>
        sql.all<{ readonly project_id: ProjectId }>(
          `UPDATE command SET state = 'expired', updated_at = ? WHERE message_id IN (
            SELECT message_id FROM command
            WHERE is_open AND expires_at <= ? AND (state = 'queued' OR expires_at <= ?)
            ORDER BY expires_at LIMIT ?
          ) RETURNING project_id`,
          [now, now, now - grace, limit]
        ).map(({ project_id }) => project_id)),
    prune: ({ before, limit }) =>
      sql.write("CommandStore.prune", () =>
        sql.run(
          `DELETE FROM command WHERE message_id IN (
            SELECT message_id FROM command WHERE NOT is_open AND updated_at < ? ORDER BY updated_at LIMIT ?
          )`,
          [before, limit]
        ))
  })
}
