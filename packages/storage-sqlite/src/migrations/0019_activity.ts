/**
 * What the overview shows: what is counted of each project, what needs attention, and
 * what nodes say of themselves beside their heartbeats.
 */
export default `
-- Each count stands twice: by minute (step 1) and by hour (step 60). Times are in minutes since 1970.
CREATE TABLE activity (
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  measure TEXT NOT NULL,
  code TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (project_id, step, minute, measure, code)
) STRICT, WITHOUT ROWID;
CREATE INDEX activity_oldest ON activity (step, minute);

-- subject: the id of a device or a scene. since and at: Unix milliseconds.
CREATE TABLE trouble (
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  times INTEGER NOT NULL,
  detail TEXT NOT NULL,
  since INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (project_id, kind, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX trouble_oldest ON trouble (at);

CREATE INDEX device_disabled ON device (project_id) WHERE NOT enabled;
CREATE INDEX ota_task_under_way ON ota_task (project_id) WHERE is_ongoing = 1;

ALTER TABLE node ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN connections INTEGER;
ALTER TABLE node ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
`
