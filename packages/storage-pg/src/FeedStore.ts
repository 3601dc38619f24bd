/**
 * The feed on PostgreSQL (docs/decisions/0078-one-log.md).
 */
import {
  type DomainEvent,
  type FeedPage,
  type FeedPlace,
  type FeedRead,
  FeedStore,
  parsePlace,
  type PlaceNumbers,
  placeOf,
  type PresenceEntry,
  presenceKinds,
  StoreError
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { SqlError } from "effect/sql"
import * as FeedHorizon from "./FeedHorizon.ts"
import * as FeedParts from "./FeedParts.ts"
import * as FeedNames from "./FeedNames.ts"
import {
  entriesFromRows,
  type FeedRow,
  kindNumber,
  placeOfRow,
  rowsAsText,
  rowsFromText,
  rowsOfText
} from "./FeedRow.ts"
import { insertEvents } from "./FeedWriter.ts"
import { type Clients, clients } from "./LongReads.ts"
import { type DatabaseError, databaseError, storeError } from "./PgErrors.ts"
import { inOrder } from "./OrderedReads.ts"
import { instant, texts, wholeNumbers } from "./PgParameters.ts"

/**
 * Part of the group that is replaced together: events refer to devices and projects,
 * and other stores write them in their transactions. When it is built, it puts new
 * events after those that came from another cluster.
 */
export const layer: Layer.Layer<FeedStore, DatabaseError, PgClient.PgClient> = Layer.effect(
  FeedStore,
  Effect.gen(function*() {
    const both = yield* clients
    yield* Effect.mapError(FeedParts.alignTransactions(both.sql), databaseError)
    return make(both)
  })
)

/** Rows that one read may look at. It is part of the statement, so that the plan is made for it. */
const scans = [100, 1000, 10_000] as const
/** Rows that a read looks at, at least, when it selects some of them. */
const minScanned = 1000
/**
 * Bytes of bodies after which a read ends, with the event that passes them: the
 * driver gives up a connection on which a message of more than 16 MiB comes.
 */
const maxBytes = 4 * 1024 * 1024

/** How much clocks of nodes differ, and how long events wait until they are stored, milliseconds. */
const maxDelay = 60_000
/** Among this many events `placeAt` looks for a recent one: some were stored late. */
const probed = 100

/** Up to where the feed is complete, and what it has forgotten. */
interface Horizon {
  readonly horizon: bigint
  readonly begun: bigint
  readonly newest: number
  readonly forgotten_xid: bigint
  readonly forgotten_seq: bigint
}

/** The first row of a read: also the place up to which it has looked, if it has not come to the horizon. */
interface Head extends Horizon {
  readonly last_xid: bigint | null
  readonly last_seq: bigint
  readonly last_slot: number
  /** Whether there are events beyond {@link maxBytes}. */
  readonly is_cut: boolean
}

/** Fails for a text that is no place, and cannot pass. */
const numbersOf = (place: FeedPlace): Effect.Effect<PlaceNumbers, StoreError> =>
  Option.match(parsePlace(place), {
    onSome: Effect.succeed,
    onNone: () =>
      Effect.fail(
        new StoreError({
          operation: "FeedStore.read",
          retryable: false,
          cause: new Error(`after: expected a place of the feed, got ${JSON.stringify(place)}`)
        })
      )
  })

/** A text of the rows of a read. */
interface Text {
  readonly rows: string | null
}

/** As the condition of the index. */
const isPresence = (sql: PgClient.PgClient) => sql.literal(`kind IN (${presenceKinds.map(kindNumber).join(", ")})`)

const endOf = ({ horizon, newest }: Horizon): FeedPlace =>
  placeOf({ transaction: Number(horizon), sequence: 0, part: newest })

const make = ({ reads, sql }: Clients): FeedStore["Service"] => {
  const horizon = sql`
    SELECT ${FeedHorizon.horizon(sql)} AS horizon, ${FeedHorizon.begun(sql)} AS begun, slot AS newest,
      forgotten_xid, forgotten_seq
    FROM feed_slot ORDER BY slot DESC LIMIT 1`

  const namesOf = FeedNames.make(reads)

  const entriesOf = (rows: ReadonlyArray<FeedRow>) => Effect.map(namesOf(rows), (names) => entriesFromRows(rows, names))

  /** `IS TRUE` keeps PostgreSQL from a join where there are few: rows stay in their order, and are not sorted once more. */
  const selects = ({ projectId, select = {} }: FeedRead) => {
    const { deviceIds, kinds, productKeys, projectIds } = select
    return sql.and([
      ...projectId !== undefined
        ? projectIds === undefined || projectIds.includes(projectId) ? [] : [sql`false`]
        : projectIds === undefined
        ? [sql`scanned.project IN (SELECT seq FROM project)`]
        : [sql`(scanned.project IN (SELECT seq FROM project WHERE id = ANY(${texts(projectIds)}))) IS TRUE`],
      ...kinds === undefined ? [] : [sql`scanned.kind = ANY(${wholeNumbers(kinds.map(kindNumber))}::smallint[])`],
      ...productKeys === undefined
        ? []
        : [sql`coalesce(device.product_key, former.product_key) = ANY(${texts(productKeys)})`],
      ...deviceIds === undefined
        ? []
        : [sql`coalesce(device.device_id, former.device_id) = ANY(${texts(deviceIds)})`],
      sql`true`
    ])
  }

  /** The tables of which a selection asks. */
  const namedTables = ({ deviceIds, productKeys }: NonNullable<FeedRead["select"]>) =>
    deviceIds === undefined && productKeys === undefined ? sql`` : sql`
        LEFT JOIN device ON device.id = scanned.device
        LEFT JOIN former_device AS former ON former.id = scanned.device`

  /** Bytes are summed row by row only if there are more than {@link maxBytes}: it takes as long as to find the rows. */
  const rowsOf = (options: FeedRead, after: PlaceNumbers) => {
    const { limit, projectId, select } = options
    const wanted = select === undefined ? limit : Math.max(limit, minScanned)
    const scan = scans.find((size) => size >= wanted) ?? scans[2]
    const bytes = sql.literal(String(maxBytes))
    const textOf = (i: number) => {
      const part = sql`OFFSET ${sql.literal(String(i * rowsOfText))} LIMIT ${sql.literal(String(rowsOfText))}`
      return sql`UNION ALL
      SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ${sql.literal(String(i))}, CASE
        WHEN is_long THEN (${rowsAsText(sql, sql`(SELECT * FROM counted WHERE preceding < ${bytes} ${part})`)})
        ELSE (${rowsAsText(sql, sql`(SELECT * FROM found ${part})`)}) END
      FROM length`
    }
    const found = Array.from({ length: Math.ceil(limit / rowsOfText) }, (_, i) => textOf(i))
    return reads<Head | Text>`
      WITH horizon AS MATERIALIZED (${horizon}), scanned AS MATERIALIZED (
        SELECT slot, kind, project, device, xid, seq, at, body FROM feed
        WHERE slot >= ${after.part - 1}
          AND ${projectId === undefined ? sql`true` : sql`project = (SELECT seq FROM project WHERE id = ${projectId})`}
          AND (xid, seq) > (${String(after.transaction)}::bigint, ${String(after.sequence)}::bigint)
          AND xid < (SELECT horizon FROM horizon)
        ORDER BY xid, seq LIMIT ${sql.literal(String(scan))}
      ), found AS MATERIALIZED (
        SELECT scanned.* FROM scanned ${namedTables(select ?? {})}
        WHERE ${selects(options)}
        ORDER BY scanned.xid, scanned.seq LIMIT ${limit}
      ), length AS MATERIALIZED (
        SELECT coalesce(sum(octet_length(body::text)) > ${bytes}, false) AS is_long FROM found
      ), counted AS MATERIALIZED (
        SELECT *, sum(bytes) OVER (ORDER BY xid, seq ROWS UNBOUNDED PRECEDING) - bytes AS preceding
        FROM (SELECT *, octet_length(body::text) AS bytes FROM found) AS measured
      )
      SELECT horizon.*, last.xid AS last_xid, last.seq AS last_seq, last.slot AS last_slot,
        CASE WHEN is_long THEN EXISTS (SELECT FROM counted WHERE preceding >= ${bytes}) ELSE false END AS is_cut,
        -1 AS text, NULL AS rows
      FROM horizon CROSS JOIN length
      LEFT JOIN (
        SELECT xid, seq, slot FROM scanned ORDER BY xid, seq OFFSET ${sql.literal(String(scan - 1))}
      ) AS last ON true
      ${sql.join(" ", false)(found)}
      ORDER BY text`
  }

  const read = Effect.fnUntraced(function*(options: FeedRead) {
    const after = yield* numbersOf(options.after)
    const [first, ...texts] = yield* inOrder(reads, rowsOf(options, after))
    const known = first as Head
    const found = (texts as ReadonlyArray<Text>).flatMap(({ rows }) => rowsFromText(rows))
    const { begun, forgotten_seq, forgotten_xid, is_cut, last_seq, last_slot, last_xid } = known
    const isFull = is_cut || found.length === options.limit
    const isOfOther = after.transaction > Number(begun)
    const end = endOf(known)
    const page: FeedPage = {
      entries: yield* entriesOf(found),
      next: isFull
        ? placeOfRow(found.at(-1)!)
        : last_xid === null
        ? isOfOther || end > options.after ? end : options.after
        : placeOf({ transaction: Number(last_xid), sequence: Number(last_seq), part: last_slot }),
      hasMore: isFull || last_xid !== null,
      isCut: is_cut,
      isGap: options.after !== "" && (
        isOfOther || after.transaction < Number(forgotten_xid) ||
        (after.transaction === Number(forgotten_xid) && after.sequence < Number(forgotten_seq))
      )
    }
    return page
  })

  /** Whether one of the events from this transaction on was recorded at `time` or later; undefined: there are none. */
  const isRecent = (transaction: number, part: number, time: number) =>
    Effect.map(
      inOrder(
        reads,
        reads<{ readonly recent: boolean | null }>`
        SELECT max(at) >= ${instant(time)} AS recent FROM (
          SELECT at FROM feed WHERE slot >= ${part - 1} AND xid >= ${String(transaction)}::bigint
          ORDER BY xid, seq LIMIT ${sql.literal(String(probed))}
        ) AS probe`
      ),
      ([row]) => row?.recent ?? true
    )

  /** Searches by halves: the times of events go up with their transactions, but for a delay. */
  const placeAt = Effect.fnUntraced(function*(time: number) {
    const from = time - maxDelay
    const [start] = yield* inOrder(
      reads,
      reads<Horizon & { readonly part: number; readonly first: bigint | null }>`
      WITH horizon AS (${horizon}), part AS (
        SELECT coalesce(max(slot), (SELECT min(slot) FROM feed_slot)) AS slot
        FROM feed_slot WHERE opened_at <= ${instant(from)}
      )
      SELECT horizon.*, part.slot AS part, (
        SELECT xid FROM feed WHERE slot >= (SELECT slot - 1 FROM part) ORDER BY xid LIMIT 1
      ) AS first FROM horizon, part`
    )
    const { first, part } = start!
    const end = Number(start!.horizon)
    let low = Math.min(Number(first ?? end), end)
    let high = end
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (yield* isRecent(middle, part, from)) high = middle
      else low = middle + 1
    }
    return placeOf({ transaction: low, sequence: 0, part })
  })

  const presenceOf: FeedStore["Service"]["presenceOf"] = Effect.fnUntraced(
    function*(deviceId, { before, limit }) {
      const place = before === undefined ? undefined : yield* numbersOf(before)
      const latest = reads`(
        SELECT slot, kind, project, device, xid, seq, at, body FROM feed
        WHERE device = (SELECT id FROM device WHERE device_id = ${deviceId}) AND ${isPresence(sql)} AND ${
        place === undefined
          ? sql`true`
          : sql`(xid, seq) < (${String(place.transaction)}::bigint, ${String(place.sequence)}::bigint)`
      } ORDER BY xid DESC, seq DESC LIMIT ${limit})`
      const [text] = yield* inOrder(reads, reads<{ readonly rows: string | null }>`${rowsAsText(reads, latest)}`)
      return (yield* entriesOf(rowsFromText(text!.rows))) as ReadonlyArray<PresenceEntry>
    },
    Effect.mapError((error) => SqlError.isSqlError(error) ? storeError("FeedStore.presenceOf")(error) : error)
  )

  const commit = <A, E, R>(
    write: Effect.Effect<A, E, R>,
    eventsOf: (result: A) => ReadonlyArray<DomainEvent>
  ): Effect.Effect<A, E | StoreError, R> =>
    sql.withTransaction(Effect.tap(write, (result) => insertEvents(sql, eventsOf(result)))).pipe(
      Effect.mapError((error): E | StoreError =>
        SqlError.isSqlError(error) ? storeError("FeedStore.commit")(error) : error
      )
    )

  return FeedStore.of({
    append: (events) => Effect.mapError(insertEvents(sql, events), storeError("FeedStore.append")),
    commit,
    read: (options) =>
      Effect.mapError(
        read(options),
        (error) => SqlError.isSqlError(error) ? storeError("FeedStore.read")(error) : error
      ),
    presenceOf,
    end: Effect.mapError(
      Effect.map(reads<Horizon>`${horizon}`, ([row]) => endOf(row!)),
      storeError("FeedStore.end")
    ),
    placeAt: (time) => Effect.mapError(placeAt(time), storeError("FeedStore.placeAt")),
    prune: (options) => Effect.mapError(FeedParts.prune(reads, options), storeError("FeedStore.prune"))
  })
}
