/**
 * Scenes, their timers and executions, the keys of webhooks.
 */
export default `
CREATE TABLE scene (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  scene_id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  status TEXT NOT NULL,
  triggers TEXT NOT NULL,
  conditions TEXT NOT NULL,
  actions TEXT NOT NULL,
  paused_until INTEGER,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
) STRICT;
CREATE INDEX scene_newest ON scene (project_id, created_at, seq);
CREATE INDEX scene_newest_of_status ON scene (project_id, status, created_at, seq);

CREATE TABLE scene_product (
  product_key TEXT NOT NULL,
  scene_id TEXT NOT NULL REFERENCES scene (scene_id) ON DELETE CASCADE,
  PRIMARY KEY (product_key, scene_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX scene_product_of_scene ON scene_product (scene_id);

CREATE TABLE scene_timer (
  cron_id TEXT PRIMARY KEY,
  scene_id TEXT NOT NULL REFERENCES scene (scene_id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  cron TEXT NOT NULL,
  time_zone TEXT,
  due_at INTEGER
) STRICT;
CREATE INDEX scene_timer_of_scene ON scene_timer (scene_id);
CREATE INDEX scene_timer_due ON scene_timer (due_at) WHERE due_at IS NOT NULL;

-- Executions that wait, and executions that are over.
CREATE TABLE scene_execution (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL UNIQUE,
  root_id TEXT,
  scene_id TEXT NOT NULL REFERENCES scene (scene_id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  fired_at INTEGER NOT NULL,
  event TEXT NOT NULL,
  chain TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  verdict TEXT NOT NULL,
  outcomes TEXT NOT NULL,
  has_fired INTEGER NOT NULL,
  due_at INTEGER,
  revision INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX scene_execution_newest ON scene_execution (scene_id, seq);
CREATE INDEX scene_execution_waiting ON scene_execution (project_id, due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX scene_execution_ended ON scene_execution (scene_id, seq) WHERE due_at IS NULL;
CREATE INDEX scene_execution_ended_at ON scene_execution (updated_at) WHERE due_at IS NULL;
CREATE INDEX scene_execution_fired ON scene_execution (scene_id, fired_at) WHERE has_fired = 1;

-- Executions that wait for the status of a device to last. What is due finds out whether the device is there.
CREATE TABLE scene_waiting (
  scene_id TEXT NOT NULL REFERENCES scene (scene_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  execution_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  event TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  PRIMARY KEY (scene_id, device_id, minutes)
) STRICT;
CREATE INDEX scene_waiting_due ON scene_waiting (due_at);

CREATE TABLE scene_tree (
  root_id TEXT PRIMARY KEY,
  actions INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended TEXT
) STRICT;
CREATE INDEX scene_tree_oldest ON scene_tree (started_at);

CREATE TABLE webhook_key (
  project_id TEXT PRIMARY KEY REFERENCES project (id) ON DELETE CASCADE,
  current TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  previous TEXT,
  previous_until INTEGER
) STRICT;
`
