/**
 * The commands of devices on PostgreSQL.
 */
import { type Command, CommandStore, type DeviceId, type Enqueue, maxWaiting, ShadowStore } from "@device-cloud/core"
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

const make = ({ reads, sql }: Clients, shadows: ShadowStore["Service"]) => {
  const open = sql.literal(hasNotEnded)

  const insert = (items: ReadonlyArray<Enqueue>) =>
    sql<CommandRow & { readonly position: bigint }>`
      WITH new AS (
        SELECT *, row_number() OVER (PARTITION BY device_id ORDER BY position) AS place FROM unnest(
          ${texts(items.map(({ command }) => command.projectId))},
          ${texts(items.map(({ command }) => command.deviceId))},
          ${texts(items.map(({ command }) => command.serviceId))},
          ${texts(items.map(({ command }) => command.userTopic))},
          ${texts(items.map(({ command }) => JSON.stringify(command.params)))}::json[],
          ${instants(items.map(({ command }) => command.createdAt))},
          ${instants(items.map(({ command }) => command.expiresAt))},
          ${wholeNumbers(items.map(({ command }) => stateNumber(command.state)))}::smallint[],
          ${texts(items.map(({ command }) => command.origin ?? null))},
          ${wholeNumbers(items.map(({ command }) => command.synchronous === true ? 1 : 0))}::smallint[]
        ) WITH ORDINALITY AS new (project_id, device_id, service_id, user_topic, params, created_at, expires_at, state,
          origin, synchronous, position)
      ), waiting AS (
        SELECT ids.device_id, (
          SELECT count(*) FROM command WHERE command.device_id = ids.device_id AND ${open}
        ) AS count
        FROM (SELECT DISTINCT device_id FROM new) AS ids JOIN device USING (device_id)
      )
      INSERT INTO command (project_id, device_id, service_id, user_topic, params, state, created_at, expires_at,
        updated_at, origin, synchronous, deliveries)
      SELECT project_id, device_id, service_id, user_topic, params, state, created_at, expires_at, created_at, origin,
        synchronous = 1, CASE WHEN state = ${sent} THEN 1 ELSE 0 END
      FROM new JOIN waiting USING (device_id) WHERE waiting.count + new.place <= ${maxWaiting}
      ORDER BY position
      RETURNING *`

  const exists = (deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<{ readonly device_id: string }>`SELECT device_id FROM device WHERE device_id = ANY(${texts(deviceIds)})`,
      (rows) => new Set(rows.map(({ device_id }) => device_id))
    )

  /** Stores the first commands of a device that fit; the others are `full`. */
  const enqueueAll = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    if (items.length === 0) return []
    const stored = new Map<DeviceId, Array<Command>>()
    const rows = yield* insert(items)
    for (const command of rows.map(commandFromRow)) {
      const known = stored.get(command.deviceId)
      if (known === undefined) stored.set(command.deviceId, [command])
      else known.push(command)
    }
    const left = rows.length === items.length
      ? new Set<string>()
      : yield* exists(items.map(({ command }) => command.deviceId))
    return items.map(({ command: { deviceId } }): Command | "full" | "no-device" =>
      stored.get(deviceId)?.shift() ?? (left.has(deviceId) ? "full" : "no-device")
    )
  })

  const enqueueWithDesire = (item: Enqueue) =>
    Effect.gen(function*() {
      const [result] = yield* enqueueAll([item])
      if (typeof result === "object") {
        yield* shadows.modify([{ deviceId: item.command.deviceId, modify: item.desire! }])
      }
      return result!
    }).pipe(sql.withTransaction)

  /** The stored commands with the origins of these items, by device and origin. */
  const existing = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    const named = items.filter(({ command }) => command.origin !== undefined)
    if (named.length === 0) return new Map<string, Command>()
    const rows = yield* sql<CommandRow & { readonly origin: string }>`
      SELECT command.* FROM command JOIN unnest(
        ${texts(named.map(({ command }) => command.deviceId))}, ${texts(named.map(({ command }) => command.origin))}
      ) AS named (device_id, origin) USING (device_id, origin)`
    return new Map(rows.map((row) => [`${row.device_id} ${row.origin}`, commandFromRow(row)]))
  })

  const enqueueOnce = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    const known = yield* existing(items)
    if (known.size === 0) return yield* enqueueAnew(items)
    const nameOf = ({ command: { deviceId, origin } }: Enqueue) => `${deviceId} ${origin}`
    const added = yield* enqueueAnew(items.filter((item) => !known.has(nameOf(item))))
    let next = 0
    return items.map((item) => known.get(nameOf(item)) ?? added[next++]!)
  })

  /** Stores the items in their order, so that message ids grow with it: each item that changes the shadow alone, the others together. */
  const enqueueAnew = Effect.fnUntraced(function*(items: ReadonlyArray<Enqueue>) {
    const results: Array<Command | "full" | "no-device"> = []
    while (results.length < items.length) {
      const rest = items.slice(results.length)
      const plain = rest.findIndex(({ desire }) => desire !== undefined)
      if (plain === 0) results.push(yield* enqueueWithDesire(rest[0]!))
      else results.push(...yield* enqueueAll(plain < 0 ? rest : rest.slice(0, plain)))
    }
    return results
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
      sql<{ readonly message_id: bigint }>`
        WITH due AS (
          SELECT message_id FROM command
          WHERE ${open} AND expires_at <= ${instant(now)}
            AND (state = ${queued} OR expires_at <= ${instant(now - grace)})
          LIMIT ${limit} FOR UPDATE SKIP LOCKED
        )
        UPDATE command SET state = ${expired}, updated_at = ${instant(now)}
        FROM due WHERE command.message_id = due.message_id
        RETURNING command.message_id`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("CommandStore.expire"))
      ),
    prune: ({ before, limit }) =>
      reads`DELETE FROM command WHERE message_id = ANY(ARRAY(
          SELECT message_id FROM command WHERE ${sql.literal(hasEnded)} AND updated_at < ${instant(before)}
          ORDER BY updated_at LIMIT ${limit}
        )) RETURNING 1`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("CommandStore.prune"))
      )
  })
}
