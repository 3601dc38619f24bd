/**
 * Up to where the feed is complete.
 */
import type { SqlClient, Statement } from "effect/sql"

/**
 * The horizon, for a statement that selects from `feed_slot`: every transaction of
 * this database with a number below it has ended, so nothing appears there any
 * more. Those of other databases in the cluster write no feed. One that ends while
 * the statement runs counts as one of this database: the horizon is then lower than
 * an earlier one.
 */
export const horizon = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`xid_offset + coalesce((
    SELECT min(running::text::bigint) FROM pg_snapshot_xip(pg_current_snapshot()) AS running
    WHERE NOT EXISTS (
      SELECT FROM pg_stat_activity
      WHERE backend_xid = running::xid AND datid <> (SELECT oid FROM pg_database WHERE datname = current_database())
    )
  ), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)`

/** As {@link horizon}: no transaction has begun with a number from this one on. It never goes down. */
export const begun = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`xid_offset + pg_snapshot_xmax(pg_current_snapshot())::text::bigint`
