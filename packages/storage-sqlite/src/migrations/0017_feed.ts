/**
 * The feed.
 */
export default `
-- device_id and product_key: null if no device belongs to the event. body: the event as JSON.
-- recorded_at never goes back. total: the bytes of all bodies up to this one.
CREATE TABLE feed (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  device_id TEXT,
  product_key TEXT,
  recorded_at INTEGER NOT NULL,
  total INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX feed_of_project ON feed (project_id, number);

-- The number of the last event that is not kept: one row.
CREATE TABLE feed_start (
  forgotten INTEGER NOT NULL
) STRICT;
INSERT INTO feed_start (forgotten) VALUES (0);
`
