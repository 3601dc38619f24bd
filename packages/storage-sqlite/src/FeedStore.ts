/**
 * The feed on SQLite (docs/decisions/0078-one-log.md). Transactions come one after
 * the other, so the number of an event is its place.
 */
import {
  type DeviceId,
  type DomainEvent,
  type FeedPage,
  type FeedPlace,
  type FeedRead,
  type FeedSelection,
  FeedStore,
  historyOf,
  parsePlace,
  placeOf,
  type PresenceEntry,
  presenceKinds,
  StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"
import { appendFeed } from "./FeedWriter.ts"
import { appendHistory } from "./HistoryWriter.ts"
import { Sqlite, type Value } from "./Sqlite.ts"
import { type DatabaseError, databaseError } from "./SqliteErrors.ts"

/**
 * Part of the group that is replaced together: other stores write events in their
 * transactions. When it is built, the numbers of new events go on at a number made of
 * the clock, if they are below: the file may be a copy that lacks events whose places
 * readers have. The number grows faster than events are written. That of a clock that is
 * far ahead is bounded: events get greater ones for ever.
 */
export const layer: Layer.Layer<FeedStore, DatabaseError, Sqlite> = Layer.effect(
  FeedStore,
  Effect.gen(function*() {
    const sql = yield* Sqlite
    const least = Math.min((yield* Clock.currentTimeMillis) * 100, maxLeast)
    yield* sql.write(
      "FeedStore.layer",
      () => {
        // A new file has no row yet. Lower places than its first are of another one.
        const isNew = sql.run(
          `INSERT INTO sqlite_sequence (name, seq)
            SELECT 'feed', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'feed')`
        ) === 1
        if (isNew) sql.run("UPDATE feed_start SET forgotten = max(forgotten, ?)", [least])
        sql.run("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'feed'", [least])
      }
    ).pipe(Effect.mapError(databaseError))
    return make(sql)
  })
)

/** Half of the numbers that are exact: that of the year 3397. */
const maxLeast = Math.floor(Number.MAX_SAFE_INTEGER / 2)

/** Events that a read looks at, at least, when it selects some of them. */
const minScanned = 1000
/** Characters of events after which a read ends, with the event that passes them: others wait while it is read. */
const maxLength = 4 * 1024 * 1024

/** Events that one transaction forgets: some milliseconds. */
const sliceSize = 1000

interface Row {
  readonly number: number
  readonly body: string
}

interface FoundRow extends Row {
  /** Rows that the read has found, with those beyond {@link maxLength}. */
  readonly found: number
}

const placeOfNumber = (number: number): FeedPlace => placeOf({ transaction: number, sequence: 0, part: 0 })

/** Fails for a text that is no place, and cannot pass. */
const numberOf = (place: FeedPlace): Effect.Effect<number, StoreError> =>
  Option.match(parsePlace(place), {
    onSome: ({ transaction }) => Effect.succeed(transaction),
    onNone: () =>
      Effect.fail(
        new StoreError({
          operation: "FeedStore.read",
          retryable: false,
          cause: new Error(`expected a place of the feed, got ${JSON.stringify(place)}`)
        })
      )
  })

/** As the condition of the index. */
const isPresence = `kind IN (${presenceKinds.map((kind) => `'${kind}'`).join(", ")})`

const isOneOf = (column: string, texts: ReadonlyArray<string> | undefined): ReadonlyArray<readonly [string, Value]> =>
  texts === undefined ? [] : [[`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(texts)]]

const conditionsOf = ({ deviceIds, kinds, productKeys, projectIds }: FeedSelection) => [
  ...isOneOf("project_id", projectIds),
  ...isOneOf("kind", kinds),
  ...isOneOf("product_key", productKeys),
  ...isOneOf("device_id", deviceIds)
]

const make = (sql: Sqlite["Service"]) => {
  /** The number of the last event that is not kept. */
  const forgotten = (): number => sql.get<{ readonly forgotten: number }>("SELECT forgotten FROM feed_start")!.forgotten

  /** The number of the last event. */
  const last = (): number =>
    sql.get<{ readonly number: number | null }>("SELECT max(number) AS number FROM feed")!.number ?? forgotten()

  const read = ({ limit, projectId, select, ...options }: FeedRead, after: number): FeedPage => {
    const scan = select === undefined ? limit : Math.max(limit, minScanned)
    const scanned = `FROM feed WHERE number > ? ${projectId === undefined ? "" : "AND project_id = ?"}
      ORDER BY number LIMIT ?`
    const scannedValues = [after, ...projectId === undefined ? [] : [projectId], scan]
    const conditions = conditionsOf(select ?? {})
    const rows = sql.all<FoundRow>(
      `SELECT number, body, found FROM (
        SELECT *, count(*) OVER () AS found, sum(length(body)) OVER (ORDER BY number) - length(body) AS preceding
        FROM (
          SELECT number, body FROM (SELECT * ${scanned}) WHERE ${
        ["true", ...conditions.map(([condition]) => condition)].join(" AND ")
      } ORDER BY number LIMIT ?
        )
      ) WHERE preceding < ${maxLength} ORDER BY number`,
      [...scannedValues, ...conditions.map(([, value]) => value), limit]
    )
    const { count, number } = sql.get<{ readonly count: number; readonly number: number | null }>(
      `SELECT count(*) AS count, max(number) AS number FROM (SELECT number ${scanned})`,
      scannedValues
    )!
    const isCut = rows.length < (rows[0]?.found ?? 0)
    const isFull = isCut || rows.length === limit
    const hasLeft = count === scan
    return {
      entries: rows.map(({ body, number }) => ({
        id: placeOfNumber(number),
        event: JSON.parse(body) as DomainEvent
      })),
      next: placeOfNumber(isFull ? rows.at(-1)!.number : hasLeft ? number! : last()),
      hasMore: isFull || hasLeft,
      isCut,
      isGap: options.after !== "" && (after < forgotten() || after > last())
    }
  }

  const presenceOf = (deviceId: DeviceId, before: number, limit: number): ReadonlyArray<PresenceEntry> =>
    sql.all<Row>(
      `SELECT number, body FROM feed WHERE device_id = ? AND ${isPresence} AND number < ?
        ORDER BY number DESC LIMIT ?`,
      [deviceId, before, limit]
    ).map(({ body, number }) => ({
      id: placeOfNumber(number),
      event: JSON.parse(body) as PresenceEntry["event"]
    }))

  /** The number of the last event before all of which `column`, which never goes down, is at least `least`. */
  const before = (column: "recorded_at" | "total", least: number): number => {
    let [low, high] = [forgotten(), last()]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const row = sql.get<{ readonly number: number; readonly value: number }>(
        `SELECT number, ${column} AS value FROM feed WHERE number > ? ORDER BY number LIMIT 1`,
        [middle]
      )
      if (row === undefined || row.value >= least) high = middle
      else low = row.number
    }
    return low
  }

  const append = (operation: string, events: ReadonlyArray<DomainEvent>): Effect.Effect<void, StoreError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      sql.write(operation, () => {
        appendFeed(sql, events, now)
        for (const event of events) {
          if (event.device !== null) appendHistory(sql, event.device.deviceId, historyOf([event]))
        }
      }))

  /** Which events are forgotten: those up to this number. */
  const surplus = (keepMillis: number, maxBytes: number, now: number): number => {
    const bytes = sql.get<{ readonly total: number }>("SELECT total FROM feed ORDER BY number DESC LIMIT 1")?.total ?? 0
    return Math.max(before("recorded_at", now - keepMillis), before("total", bytes - maxBytes))
  }

  const forget = (upTo: number): number => {
    const removed = sql.run(
      "DELETE FROM feed WHERE number IN (SELECT number FROM feed WHERE number <= ? ORDER BY number LIMIT ?)",
      [upTo, sliceSize]
    )
    const first = sql.get<{ readonly number: number }>("SELECT number FROM feed ORDER BY number LIMIT 1")
    sql.run("UPDATE feed_start SET forgotten = max(forgotten, ?)", [Math.min(upTo, (first?.number ?? upTo + 1) - 1)])
    return removed
  }

  return FeedStore.of({
    append: (events) => append("FeedStore.append", events),
    commit: (write, eventsOf) =>
      sql.within(
        "FeedStore.commit",
        Effect.tap(write, (result) => append("FeedStore.commit", eventsOf(result)))
      ),
    read: (options) =>
      Effect.flatMap(numberOf(options.after), (number) => sql.read("FeedStore.read", () => read(options, number))),
    presenceOf: (deviceId, { before, limit }) =>
      Effect.flatMap(
        before === undefined ? Effect.succeed(Number.MAX_SAFE_INTEGER) : numberOf(before),
        (number) => sql.read("FeedStore.presenceOf", () => presenceOf(deviceId, number, limit))
      ),
    end: sql.read("FeedStore.end", () => placeOfNumber(last())),
    placeAt: (time) => sql.read("FeedStore.placeAt", () => placeOfNumber(before("recorded_at", time))),
    prune: ({ keepMillis, maxBytes }) =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        const upTo = yield* sql.read("FeedStore.prune", () => surplus(keepMillis, maxBytes, now))
        while ((yield* sql.write("FeedStore.prune", () => forget(upTo))) === sliceSize) yield* Effect.yieldNow
      })
  })
}
