/**
 * The tables of the history on ClickHouse.
 *
 * `device_history` has a row for each entry. Rows with the same key are one entry
 * that came in several times; the engine keeps the one with the highest `rank`,
 * which was stored first. Reads say FINAL, so that an entry is there once before
 * the engine has merged its rows, too.
 *
 * `device_history_removed` has a row for each device whose history was removed:
 * entries with a higher rank, which were stored before, are no longer there.
 *
 * Both have partitions by the month in which a row was stored. So a call of
 * `append` is one part, which is there as a whole or not at all; and what is too
 * old goes with its partition.
 */

export const history = "device_history"
export const removed = "device_history_removed"

/** In the order of the rows that are inserted. */
export const historyColumns = "stored, device, kind, name, time, copy, rank, value, number"

export const tables = [
  // kind: 0 property, 1 event; name: its id. time: Unix milliseconds. copy: counts equal entries of one call.
  // rank: the later it was stored, the lower. value: JSON; number: the value if it is one.
  `CREATE TABLE IF NOT EXISTS ${history} (
    stored Date,
    device String,
    kind UInt8,
    name String,
    time Int64,
    copy UInt32,
    rank UInt64,
    value String,
    number Nullable(Float64)
  ) ENGINE = ReplacingMergeTree(rank)
  PARTITION BY toYYYYMM(stored)
  ORDER BY (device, kind, name, time, value, copy)
  PRIMARY KEY (device, kind, name, time)`,

  `CREATE TABLE IF NOT EXISTS ${removed} (
    stored Date,
    device String,
    rank UInt64
  ) ENGINE = MergeTree
  PARTITION BY toYYYYMM(stored)
  ORDER BY device`
]
