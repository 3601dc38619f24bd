/**
 * The history in packed segments (docs/decisions/0080-packed-history.md). What the
 * tables before it have becomes segments that are kept for ever.
 */
import { statements } from "./statements.ts"

/** Entries of a segment, at most. */
const maxEntries = 4096

const oldEntries = (table: string, name: string, sign: string) => `
  SELECT coalesce(device.id, history_device.number) AS device, ${sign} history_name.number AS series, entry.id,
    (extract(epoch FROM entry.time) * 1000)::bigint AS millis, entry.value
  FROM ${table} AS entry JOIN history_name ON history_name.name = entry.${name}
  LEFT JOIN device ON device.device_id = entry.device_id
  LEFT JOIN history_device ON history_device.device_id = entry.device_id AND device.id IS NULL`

export default statements([
  // The ids of properties and events.
  `CREATE TABLE history_name (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
  )`,

  // The devices of a history that stands apart: they have no number in "device".
  `CREATE TABLE history_device (
    number bigint GENERATED ALWAYS AS IDENTITY (START WITH -1 INCREMENT BY -1) PRIMARY KEY,
    device_id text COLLATE "C" NOT NULL UNIQUE
  )`,

  `CREATE SEQUENCE history_seq`,

  // keep: days, 0 for ever. device: device.id or history_device.number. series: the number of
  // a property, or of an event with a minus. day: days since 1970. first, last: milliseconds of the day.
  `CREATE TABLE history_segment (
    device bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('history_seq'),
    series int NOT NULL,
    day int NOT NULL,
    first int NOT NULL,
    last int NOT NULL,
    count int NOT NULL,
    keep smallint NOT NULL,
    data bytea NOT NULL
  ) PARTITION BY LIST (keep)`,
  // PostgreSQL before 16 knows no STORAGE in CREATE TABLE.
  `ALTER TABLE history_segment ALTER COLUMN data SET STORAGE EXTERNAL`,
  `CREATE INDEX history_segment_of_series ON history_segment (device, series, day)`,
  `CREATE INDEX history_segment_of_day ON history_segment USING brin (day) WITH (pages_per_range = 16)`,
  `CREATE TABLE history_segment_0 PARTITION OF history_segment FOR VALUES IN (0)`,

  // Days that have got segments since their segments were merged.
  `CREATE TABLE history_unmerged (
    day int PRIMARY KEY,
    marked_at timestamptz NOT NULL DEFAULT now()
  )`,

  // One row. xid: everything in the feed with a lower number is packed. seq: what feed_seq had come
  // to then. swept_at: devices deleted before have no segments. keep_days: for products without days of their own.
  `CREATE TABLE history_place (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    xid bigint NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    packed_at timestamptz NOT NULL DEFAULT now(),
    swept_at timestamptz NOT NULL DEFAULT now(),
    keep_days smallint NOT NULL DEFAULT 0,
    leased_until timestamptz NOT NULL DEFAULT '-infinity'
  )`,
  `INSERT INTO history_place (xid) SELECT coalesce(max(xid) + 1, 0) FROM feed`,

  `CREATE TABLE history_retention (
    product_key text COLLATE "C" PRIMARY KEY REFERENCES product ON DELETE CASCADE,
    days smallint NOT NULL
  )`,

  `INSERT INTO history_name (name)
    SELECT property_id FROM property_sample UNION SELECT event_id FROM device_event`,
  `INSERT INTO history_device (device_id)
    SELECT device_id FROM (SELECT device_id FROM property_sample UNION SELECT device_id FROM device_event) AS old
    WHERE NOT EXISTS (SELECT FROM device WHERE device.device_id = old.device_id)`,
  `INSERT INTO history_segment (keep, device, series, day, first, last, count, data)
    SELECT 0, device, series, day, min(millis), max(millis), count(*),
      '\\x00'::bytea || convert_to(json_agg(json_build_array(millis, value) ORDER BY millis, id)::text, 'UTF8')
    FROM (
      SELECT device, series, id, value, floor(millis / 86400000.0)::int AS day,
        (millis - floor(millis / 86400000.0) * 86400000)::int AS millis,
        (row_number() OVER (
          PARTITION BY device, series, floor(millis / 86400000.0) ORDER BY millis, id
        ) - 1) / ${maxEntries} AS part
      FROM (
        ${oldEntries("property_sample", "property_id", "")} UNION ALL ${oldEntries("device_event", "event_id", "-")}
      ) AS old
    ) AS entry
    GROUP BY device, series, day, part ORDER BY device, series, day, part`,
  `DROP TABLE property_sample`,
  `DROP TABLE device_event`
])
