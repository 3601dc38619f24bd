/**
 * The feed: one log of all domain events, in parts (docs/decisions/0078-one-log.md).
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE UNIQUE INDEX device_number ON device (id)`,
  `CREATE UNIQUE INDEX project_number ON project (seq)`,

  // The names of a deleted device, as long as the feed may have events of it.
  `CREATE TABLE former_device (
    id bigint PRIMARY KEY,
    device_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL,
    device_name text COLLATE "C" NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX former_device_name ON former_device (device_id)`,
  `CREATE INDEX former_device_deleted ON former_device USING brin (deleted_at)`,

  `CREATE SEQUENCE feed_seq`,

  // xid: the number of the transaction, plus the offset of its slot. project: project.seq; device: device.id, 0 without a device; kind: the index in the list of kinds.
  `CREATE TABLE feed (
    slot int NOT NULL,
    kind smallint NOT NULL,
    project bigint NOT NULL,
    device bigint NOT NULL,
    xid bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('feed_seq'),
    at timestamptz NOT NULL,
    body json NOT NULL
  ) PARTITION BY LIST (slot)`,
  `CREATE INDEX feed_of_project ON feed (project, xid, seq)`,
  `CREATE INDEX feed_of_device ON feed (device, xid)`,
  `CREATE INDEX feed_in_order ON feed (xid, seq)`,

  // The parts of the feed; the one with the highest number takes new rows. xid_offset keeps
  // the order when a dump is restored into a cluster whose transactions have lower numbers.
  // forgotten_xid and forgotten_seq: the place of the last event of the parts that are gone.
  `CREATE TABLE feed_slot (
    slot int PRIMARY KEY,
    opened_at timestamptz NOT NULL DEFAULT now(),
    xid_offset bigint NOT NULL DEFAULT 0,
    forgotten_xid bigint NOT NULL DEFAULT 0,
    forgotten_seq bigint NOT NULL DEFAULT 0
  )`,
  `INSERT INTO feed_slot VALUES (1)`,
  `CREATE TABLE feed_1 PARTITION OF feed FOR VALUES IN (1)`
])
