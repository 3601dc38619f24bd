/**
 * Groups of devices, jobs, bulk commands.
 */
export default `
-- query: null for a static group.
CREATE TABLE device_group (
  group_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  query TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
) STRICT;
CREATE INDEX device_group_newest ON device_group (project_id, created_at, group_id);

CREATE TABLE device_group_member (
  group_id INTEGER NOT NULL REFERENCES device_group (group_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  PRIMARY KEY (group_id, device_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX device_group_member_of_device ON device_group_member (device_id);

CREATE TABLE job (
  job_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  document TEXT NOT NULL,
  timeout INTEGER NOT NULL,
  product_key TEXT,
  is_cancelled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX job_newest ON job (project_id, created_at, job_id);
CREATE INDEX job_oldest ON job (created_at);

-- is_open: the task has not ended, as the core says of its state.
CREATE TABLE job_task (
  job_id INTEGER NOT NULL REFERENCES job (job_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  state TEXT NOT NULL DEFAULT 'queued',
  is_open INTEGER NOT NULL DEFAULT 1,
  is_untold INTEGER NOT NULL DEFAULT 1,
  progress INTEGER NOT NULL DEFAULT 0,
  details TEXT NOT NULL DEFAULT '{}',
  due_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, device_id)
) STRICT;
CREATE INDEX job_task_of_device ON job_task (device_id, job_id);
CREATE INDEX job_task_open ON job_task (job_id) WHERE is_open = 1;
CREATE INDEX job_task_due ON job_task (due_at) WHERE due_at IS NOT NULL;

-- turns: devices to ask, and commands to cancel.
CREATE TABLE bulk_command (
  bulk_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  service_id TEXT,
  params TEXT NOT NULL,
  ttl INTEGER NOT NULL,
  is_cancelled INTEGER NOT NULL DEFAULT 0,
  total INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  served_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bulk_command_newest ON bulk_command (project_id, created_at, bulk_id);
CREATE INDEX bulk_command_waiting ON bulk_command (served_at) WHERE turns > 0;
CREATE INDEX bulk_command_running ON bulk_command (project_id) WHERE turns > 0;
CREATE INDEX bulk_command_ended ON bulk_command (updated_at) WHERE turns = 0;

-- No foreign key to devices: those that are removed stay in the list.
-- state: to-ask, asked, refused, left-out, to-cancel. Those to ask and to cancel have a turn.
CREATE TABLE bulk_command_device (
  bulk_id INTEGER NOT NULL REFERENCES bulk_command (bulk_id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  device_id TEXT NOT NULL,
  device_name TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'to-ask',
  claimed_until INTEGER NOT NULL DEFAULT 0,
  message_id INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (bulk_id, place)
) STRICT;
CREATE INDEX bulk_command_device_waiting ON bulk_command_device (bulk_id, place) WHERE state IN ('to-ask', 'to-cancel');
`
