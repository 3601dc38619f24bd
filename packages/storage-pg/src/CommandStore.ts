/**
 * The commands of devices on PostgreSQL.
 */
import {
  CommandStore,
  type DeviceId,
  type Enqueue,
  type Enqueued,
  maxWaiting,
  type NotEnqueued,
  ProjectId,
  type ShadowModification,
  ShadowStore
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { advanceCommands, commandFromRow, type CommandRow, hasEnded, hasNotEnded, stateNumber } from "./CommandRow.ts"
import type { SqlError } from "effect/sql"
import { type Clients, clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

/**
 * Part of the group that is replaced together: a command may change the shadow,
 * in one transaction. The `ShadowStore` must be the one on the same client.
 */
export const layer: Layer.Layer<CommandStore, never, PgClient.PgClient | ShadowStore> = Layer.effect(
  CommandStore,
  Effect.gen(function*() {
    return make(yield* clients, yield* ShadowStore)
  })
)

const queued = stateNumber("queued")
const sent = stateNumber("sent")
const expired = stateNumber("expired")
const cancelled = stateNumber("cancelled")

/** A command that is stored; all its columns are null for a device of which none is. */
interface EnqueuedRow extends Omit<CommandRow, "message_id"> {
  readonly message_id: bigint | null
  readonly locked_id: string
  readonly last_command: bigint
  readonly node_id: string | null
  readonly epoch: bigint
  readonly enabled: boolean
}

const isStored = (row: EnqueuedRow): row is EnqueuedRow & CommandRow => row.message_id !== null

const make = ({ reads, sql }: Clients, shadows: ShadowStore["Service"]) => {
  const open = sql.literal(hasNotEnded)

  /**
   * Stores commands, unless a device has no row in `presence`: then it returns nothing.
   * Those rows are locked before ids are taken, in the order of device ids, so that the
   * ids of a device grow in the order of the commits. Returns a row for each command
   * that is stored, and one for each other device.
   */
  const insert = (items: ReadonlyArray<Enqueue>, deviceIds: ReadonlyArray<DeviceId>) =>
    sql<EnqueuedRow>`
      WITH new AS MATERIALIZED (
        SELECT *, row_number() OVER (PARTITION BY device_id ORDER BY position) AS place FROM unnest(
          ${texts(items.map(({ command }) => command.projectId))},
          ${texts(items.map(({ command }) => command.deviceId))},
          ${texts(items.map(({ command }) => command.serviceId))},
          ${texts(items.map(({ command }) => command.userTopic))},
          ${texts(items.map(({ command }) => JSON.stringify(command.params)))}::json[],
          ${instants(items.map(({ command }) => command.createdAt))},
          ${instants(items.map(({ command }) => command.expiresAt))},
          ${wholeNumbers(items.map(({ epoch }) => epoch ?? 0))}::bigint[],
          ${texts(items.map(({ command }) => command.origin ?? null))},
          ${wholeNumbers(items.map(({ command }) => command.synchronous === true ? 1 : 0))}::smallint[]
        ) WITH ORDINALITY AS new (project_id, device_id, service_id, user_topic, params, created_at, expires_at, epoch,
          origin, synchronous, position)
      ), locked AS MATERIALIZED (
        SELECT presence.device_id, presence.last_command, presence.node_id, presence.epoch, device.enabled
        FROM presence JOIN device USING (device_id)
        WHERE presence.device_id = ANY(${texts(deviceIds)})
          AND (SELECT count(*) FROM presence WHERE device_id = ANY(${texts(deviceIds)})) = ${deviceIds.length}
        ORDER BY presence.device_id FOR NO KEY UPDATE OF presence
      ), waiting AS MATERIALIZED (
        SELECT locked.*, (
          SELECT count(*) FROM command WHERE command.device_id = locked.device_id AND ${open}
        ) AS count
        FROM locked WHERE enabled AND (SELECT count(*) FROM locked) = ${deviceIds.length}
      ), stored AS (
        INSERT INTO command (project_id, device_id, service_id, user_topic, params, state, created_at, expires_at,
          updated_at, origin, synchronous, deliveries)
        SELECT project_id, device_id, service_id, user_topic, params, CASE WHEN is_sent THEN ${sent} ELSE ${queued} END,
          created_at, expires_at, created_at, origin, synchronous = 1, CASE WHEN is_sent THEN 1 ELSE 0 END
        FROM (
          SELECT new.*, coalesce(waiting.node_id IS NOT NULL AND waiting.epoch = new.epoch, false) AS is_sent
          FROM new JOIN waiting USING (device_id) WHERE waiting.count + new.place <= ${maxWaiting}
        ) AS fitting
        ORDER BY position
        RETURNING *
      ), known AS (
        UPDATE presence SET last_command = latest.message_id
        FROM (SELECT device_id, max(message_id) AS message_id FROM stored GROUP BY device_id) AS latest
        WHERE presence.device_id = latest.device_id
      )
      SELECT stored.*, locked.device_id AS locked_id, locked.last_command, locked.node_id, locked.epoch, locked.enabled
      FROM locked LEFT JOIN stored USING (device_id) ORDER BY stored.message_id`

  /**
   * Makes rows in `presence` for devices without one. Locks those of all, in the order
   * in which `insert` does. Returns the devices that exist.
   */
  const makeOwnable = (deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<{ readonly device_id: string }>`
        WITH existing AS (
          SELECT device_id FROM device WHERE device_id = ANY(${texts(deviceIds)})
          -- Whoever removes one meanwhile comes first or waits.
          ORDER BY device_id COLLATE "C" FOR KEY SHARE
        ), made AS (
          INSERT INTO presence AS held (device_id) SELECT device_id FROM existing ORDER BY device_id
          -- Changes nothing, but locks.
          ON CONFLICT (device_id) DO UPDATE SET last_command = held.last_command WHERE false
        )
        SELECT device_id FROM existing`,
      (rows) => new Set(rows.map(({ device_id }) => device_id))
    )

  /** Stores the first commands of a device that fit; the others are `full`. */
  const enqueueAll = Effect.fnUntraced(function*(
    items: ReadonlyArray<Enqueue>
  ): Effect.fn.Return<ReadonlyArray<Enqueued | NotEnqueued>, SqlError.SqlError> {
    if (items.length === 0) return []
    const deviceIds = [...new Set(items.map(({ command }) => command.deviceId))]
    const rows = yield* insert(items, deviceIds)
    const found = new Map<string, Array<EnqueuedRow>>()
    for (const row of rows) {
      const known = found.get(row.locked_id)
      if (known === undefined) found.set(row.locked_id, [row])
      else known.push(row)
    }
    if (found.size < deviceIds.length) {
      const made = yield* makeOwnable(deviceIds)
      const isThere = ({ command: { deviceId } }: Enqueue) => made.has(deviceId)
      const results = (yield* enqueueAll(items.filter(isThere))).values()
      return items.map((item) => isThere(item) ? results.next().value! : "no-device")
    }
    const previous = new Map(rows.map(({ last_command, locked_id }) => [locked_id, Number(last_command)]))
    const disabled = new Set(rows.flatMap(({ enabled, locked_id }) => enabled ? [] : [locked_id]))
    return items.map(({ command: { deviceId } }) => {
      const row = found.get(deviceId)!.shift()
      if (row === undefined || !isStored(row)) return disabled.has(deviceId) ? "disabled" : "full"
      const command = commandFromRow(row)
      const before = previous.get(deviceId)!
      previous.set(deviceId, command.messageId)
      const { epoch, node_id: nodeId } = row
      return { command, previous: before, owner: nodeId === null ? undefined : { nodeId, epoch: Number(epoch) } }
    })
  })

  /** The changes of shadows that belong to stored commands: one for each device. */
  const desires = (items: ReadonlyArray<Enqueue>, results: ReadonlyArray<Enqueued | NotEnqueued>) => {
    const byDevice = new Map<DeviceId, Array<NonNullable<Enqueue["desire"]>>>()
    for (const [i, { command: { deviceId }, desire }] of items.entries()) {
      if (desire === undefined || typeof results[i] === "string") continue
      const others = byDevice.get(deviceId)
      if (others === undefined) byDevice.set(deviceId, [desire])
      else others.push(desire)
    }
    return [...byDevice].map(([deviceId, all]): ShadowModification<undefined> => ({
      deviceId,
      modify: (shadow) => [undefined, all.reduce((changed, desire) => desire(changed)[1], shadow)]
    }))
  }

  /** As `enqueueAll`, with the changes of shadows. */
  const enqueueAnew = (items: ReadonlyArray<Enqueue>) =>
    items.some(({ desire }) => desire !== undefined)
      ? sql.withTransaction(Effect.tap(enqueueAll(items), (results) => shadows.modify(desires(items, results))))
      : enqueueAll(items)

  /** The stored commands with the origins of these items, by device and origin. */
  const existing = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    const named = items.filter(({ command }) => command.origin !== undefined)
    if (named.length === 0) return new Map<string, Enqueued>()
    const rows = yield* sql<CommandRow & { readonly origin: string }>`
      SELECT command.* FROM command JOIN unnest(
        ${texts(named.map(({ command }) => command.deviceId))}, ${texts(named.map(({ command }) => command.origin))}
      ) AS named (device_id, origin) USING (device_id, origin)`
    return new Map(rows.map((row): [string, Enqueued] => [
      `${row.device_id} ${row.origin}`,
      { command: commandFromRow(row), previous: undefined, owner: undefined }
    ]))
  })

  const enqueueOnce = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    if (items.every(({ command }) => command.origin === undefined)) return yield* enqueueAnew(items)
    const results: Map<string, Enqueued | NotEnqueued> = yield* existing(items)
    // Of several items of one origin, the first stores the command.
    const names = new Set(results.keys())
    const nameOf = ({ command: { deviceId, origin } }: Enqueue, place: number) =>
      origin === undefined ? `${place}` : `${deviceId} ${origin}`
    const isFirst = items.map((item, place) => {
      const { size } = names
      return names.add(nameOf(item, place)).size > size
    })
    const added = (yield* enqueueAnew(items.filter((_, place) => isFirst[place]))).values()
    return items.map((item, place) => {
      const name = nameOf(item, place)
      if (!isFirst[place]) return results.get(name)!
      const result = added.next().value!
      results.set(name, typeof result === "string" ? result : { ...result, previous: undefined, owner: undefined })
      return result
    })
  })

  return CommandStore.of({
    enqueue: (items) =>
      enqueueOnce(items).pipe(
        // Another node has just stored a command of the same origin.
        Effect.catchIf(
          (error): error is SqlError.SqlError => error._tag === "SqlError" && isUniqueViolation(error),
          () => enqueueOnce(items)
        ),
        Effect.mapError((error) => error._tag === "StoreError" ? error : storeError("CommandStore.enqueue")(error))
      ),
    advance: (steps) =>
      Effect.asVoid(advanceCommands(sql, steps)).pipe(Effect.mapError(storeError("CommandStore.advance"))),
    unfinished: ({ after, deviceId, limit, now }) =>
      sql<CommandRow>`
        SELECT * FROM command
        WHERE device_id = ${deviceId} AND ${open} AND message_id > ${after}
          AND expires_at > ${instant(now)}
        ORDER BY message_id LIMIT ${limit}`.pipe(
        Effect.map((rows) => rows.map(commandFromRow)),
        Effect.mapError(storeError("CommandStore.unfinished"))
      ),
    get: (deviceId, messageId) =>
      sql<CommandRow>`SELECT * FROM command WHERE message_id = ${messageId} AND device_id = ${deviceId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), commandFromRow)),
        Effect.mapError(storeError("CommandStore.get"))
      ),
    list: (deviceId, page) =>
      paginate<CommandRow>(reads, {
        table: "command",
        where: sql`device_id = ${deviceId}`,
        tieBreaker: "message_id",
        isOrder: true,
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(commandFromRow), total })),
        Effect.mapError(storeError("CommandStore.list"))
      ),
    cancel: (deviceId, messageId, at) =>
      sql<CommandRow>`
        UPDATE command SET
          state = CASE WHEN state = ${queued} THEN ${cancelled} ELSE state END,
          updated_at = CASE WHEN state = ${queued} THEN ${instant(at)} ELSE updated_at END
        WHERE message_id = ${messageId} AND device_id = ${deviceId}
        RETURNING *`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), commandFromRow)),
        Effect.mapError(storeError("CommandStore.cancel"))
      ),
    expire: ({ grace, limit, now }) =>
      sql<{ readonly project_id: string }>`
        WITH due AS (
          SELECT device_id, message_id FROM command
          WHERE ${open} AND expires_at <= ${instant(now)}
            AND (state = ${queued} OR expires_at <= ${instant(now - grace)})
          LIMIT ${limit} FOR UPDATE SKIP LOCKED
        )
        UPDATE command SET state = ${expired}, updated_at = ${instant(now)}
        FROM due WHERE command.device_id = due.device_id AND command.message_id = due.message_id
        RETURNING command.project_id`.pipe(
        Effect.map((rows) => rows.map(({ project_id }) => ProjectId.make(project_id))),
        Effect.mapError(storeError("CommandStore.expire"))
      ),
    prune: ({ before, limit }) =>
      reads`DELETE FROM command WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM command WHERE ${sql.literal(hasEnded)} AND updated_at < ${instant(before)}
          ORDER BY updated_at LIMIT ${limit}
        )) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("CommandStore.prune"))
      )
  })
}
