/**
 * Firmware and its keys, upgrade tasks and their records, the versions of modules.
 */
export default `
CREATE TABLE firmware (
  firmware_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  product_key TEXT NOT NULL REFERENCES product (product_key) ON DELETE CASCADE,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  oss_path TEXT NOT NULL,
  hash TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  signature TEXT,
  signing_key_id TEXT,
  signing_algorithm TEXT,
  size INTEGER NOT NULL,
  remark TEXT NOT NULL,
  module TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (product_key, module, version)
) STRICT;
CREATE INDEX firmware_newest ON firmware (project_id, created_at, firmware_id);

CREATE TABLE firmware_key (
  product_key TEXT PRIMARY KEY REFERENCES product (product_key) ON DELETE CASCADE,
  key_id TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  public_key TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- is_ongoing: what the core says of the status.
CREATE TABLE ota_task (
  task_id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  project_id TEXT NOT NULL,
  product_key TEXT NOT NULL,
  firmware_id INTEGER NOT NULL REFERENCES firmware (firmware_id) ON DELETE CASCADE,
  module TEXT NOT NULL,
  version TEXT NOT NULL,
  status TEXT NOT NULL,
  is_ongoing INTEGER NOT NULL,
  upgrade_policy TEXT NOT NULL,
  scope_mode TEXT NOT NULL,
  is_dynamic INTEGER NOT NULL,
  timeout INTEGER NOT NULL,
  need_app_confirm INTEGER NOT NULL,
  is_app_confirmed INTEGER NOT NULL,
  download_protocol TEXT NOT NULL,
  maximum_per_minute INTEGER NOT NULL,
  retry_count INTEGER NOT NULL,
  retry_interval INTEGER NOT NULL,
  abort_threshold_percent INTEGER NOT NULL,
  abort_min_executed INTEGER NOT NULL,
  stages TEXT NOT NULL,
  stage INTEGER NOT NULL,
  stage_success_percent INTEGER NOT NULL,
  start_window TEXT NOT NULL,
  pending INTEGER NOT NULL DEFAULT 0,
  upgrading INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ota_task_newest ON ota_task (firmware_id, created_at, task_id);
CREATE INDEX ota_task_ongoing ON ota_task (firmware_id) WHERE is_ongoing = 1;
CREATE INDEX ota_task_verify ON ota_task (firmware_id, task_id) WHERE kind = 'verify';
CREATE INDEX ota_task_dynamic ON ota_task (product_key) WHERE is_dynamic = 1 AND is_ongoing = 1;
CREATE INDEX ota_task_oldest ON ota_task (created_at);

-- A record stays when its device is removed. place: 0 and up in each task, without gaps.
-- is_open: the record has not ended, as the core says of its status.
CREATE TABLE ota_record (
  task_id INTEGER NOT NULL REFERENCES ota_task (task_id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  device_id TEXT NOT NULL,
  device_name TEXT NOT NULL,
  module TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending',
  is_open INTEGER NOT NULL DEFAULT 1,
  step INTEGER NOT NULL DEFAULT 0,
  is_confirmed INTEGER NOT NULL DEFAULT 0,
  is_held INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  due_at INTEGER,
  updated_at INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task_id, place)
) STRICT;
CREATE UNIQUE INDEX ota_record_of_device ON ota_record (device_id, task_id);
CREATE UNIQUE INDEX ota_record_open ON ota_record (device_id, module) WHERE is_open = 1;
CREATE INDEX ota_record_open_of_task ON ota_record (task_id, place) WHERE is_open = 1;
CREATE INDEX ota_record_due ON ota_record (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE device_module (
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  module TEXT NOT NULL,
  version TEXT NOT NULL,
  reported_at INTEGER NOT NULL,
  PRIMARY KEY (device_id, module)
) STRICT, WITHOUT ROWID;
`
