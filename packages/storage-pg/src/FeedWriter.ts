/**
 * The statements that write rows of the feed.
 */
import { type DomainEvent, projectOf } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { bodyOf, kindNumber } from "./FeedRow.ts"
import { eachByIndex, instants, texts, wholeNumbers } from "./PgParameters.ts"

/** An event of a device whose numbers are known. */
export interface NumberedEvent {
  readonly event: DomainEvent
  /** `device.id` */
  readonly device: number
  /** `project.seq` */
  readonly project: number
  /** Written only if the table `written` has this device; null: in any case. */
  readonly boundTo: string | null
}

/**
 * Inserts events, in their order, as part of a statement with a table `written`.
 * Of two statements that meet at one shadow, only one writes it; the other one
 * runs again with a later number. So the numbers of transactions are the order of
 * a device's events.
 */
export const insertNumbered = (
  sql: SqlClient.SqlClient,
  events: ReadonlyArray<NumberedEvent>
): Statement.Fragment =>
  sql`INSERT INTO feed (slot, kind, project, device, xid, at, body)
    SELECT place.slot, new.kind, new.project, new.device, place.xid, new.at, new.body
    FROM (
      SELECT slot, pg_current_xact_id()::text::bigint + xid_offset AS xid FROM feed_slot ORDER BY slot DESC LIMIT 1
    ) AS place, unnest(
      ${wholeNumbers(events.map(({ event }) => kindNumber(event._tag)))}::smallint[],
      ${wholeNumbers(events.map(({ project }) => project))}::bigint[],
      ${wholeNumbers(events.map(({ device }) => device))}::bigint[],
      ${instants(events.map(({ event }) => event.at))},
      ${texts(events.map(({ event }) => bodyOf(event)))}::json[],
      ${texts(events.map(({ boundTo }) => boundTo))}
    ) AS new (kind, project, device, at, body, bound_to)
    WHERE new.bound_to IS NULL OR new.bound_to IN (SELECT device_id FROM written)`

/**
 * Inserts events, in their order; those of devices that nobody knows are left out.
 * Within a transaction it comes after the writes that the events tell of.
 *
 * The number of the transaction may be older than that of another one that has
 * written the same device before, because both waited for a lock. The newest
 * number that has ended is at least the other one's, and the sequence decides.
 */
export const insertEvents = (
  sql: SqlClient.SqlClient,
  events: ReadonlyArray<DomainEvent>
): Effect.Effect<void, SqlError.SqlError> =>
  events.length === 0 ? Effect.void : Effect.asVoid(sql`
    INSERT INTO feed (slot, kind, project, device, xid, at, body)
    SELECT place.slot, new.kind, project.seq, coalesce(device.id, former_device.id, 0), place.xid, new.at, new.body
    FROM (
      SELECT slot, xid_offset + greatest(
        pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1
      ) AS xid FROM feed_slot ORDER BY slot DESC LIMIT 1
    ) AS place, (
      SELECT * FROM unnest(
        ${wholeNumbers(events.map(({ _tag }) => kindNumber(_tag)))}::smallint[],
        ${texts(events.map(projectOf))},
        ${texts(events.map(({ device }) => device?.deviceId ?? null))},
        ${instants(events.map(({ at }) => at))},
        ${texts(events.map(bodyOf))}::json[]
      ) WITH ORDINALITY ${eachByIndex(sql, events.length)}
    ) AS new (kind, project_id, device_id, at, body, position)
    JOIN project ON project.id = new.project_id
    LEFT JOIN device ON device.device_id = new.device_id
    LEFT JOIN former_device ON former_device.device_id = new.device_id AND device.id IS NULL
    WHERE new.device_id IS NULL OR device.id IS NOT NULL OR former_device.id IS NOT NULL
    ORDER BY new.position`)
