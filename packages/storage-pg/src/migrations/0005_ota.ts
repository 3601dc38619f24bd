/**
 * Firmware, upgrade tasks and their records, the versions of modules.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE firmware (
    firmware_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    name text NOT NULL,
    version text NOT NULL,
    oss_path text NOT NULL,
    hash text NOT NULL,
    size int NOT NULL,
    remark text NOT NULL,
    module text NOT NULL,
    status smallint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (product_key, module, version)
  )`,
  `CREATE INDEX firmware_newest ON firmware (project_id, created_at DESC, firmware_id DESC)`,

  `CREATE TABLE ota_task (
    task_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL,
    firmware_id bigint NOT NULL REFERENCES firmware ON DELETE CASCADE,
    module text NOT NULL,
    version text NOT NULL,
    status smallint NOT NULL,
    upgrade_policy smallint NOT NULL,
    scope_mode smallint NOT NULL,
    timeout int NOT NULL,
    need_app_confirm boolean NOT NULL,
    is_app_confirmed boolean NOT NULL,
    maximum_per_minute int NOT NULL,
    retry_count int NOT NULL,
    retry_interval int NOT NULL,
    abort_threshold_percent int NOT NULL,
    abort_min_executed int NOT NULL,
    pending int NOT NULL DEFAULT 0,
    upgrading int NOT NULL DEFAULT 0,
    succeeded int NOT NULL DEFAULT 0,
    failed int NOT NULL DEFAULT 0,
    cancelled int NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX ota_task_newest ON ota_task (firmware_id, created_at DESC, task_id DESC)`,

  // A record stays when its device is deleted.
  `CREATE TABLE ota_record (
    task_id bigint NOT NULL REFERENCES ota_task ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL,
    device_name text NOT NULL,
    module text NOT NULL,
    status smallint NOT NULL DEFAULT 1,
    step int NOT NULL DEFAULT 0,
    is_confirmed boolean NOT NULL DEFAULT false,
    failures int NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT '',
    due_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, device_id)
  ) WITH (fillfactor = 80)`,
  `CREATE INDEX ota_record_newest ON ota_record (task_id, created_at DESC, device_id DESC)`,
  `CREATE INDEX ota_record_of_device ON ota_record (device_id, task_id)`,
  `CREATE UNIQUE INDEX ota_record_unfinished ON ota_record (device_id, module) WHERE status < 3`,
  `CREATE INDEX ota_record_due ON ota_record (due_at) WHERE due_at IS NOT NULL`,

  `CREATE TABLE device_module (
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    module text NOT NULL,
    version text NOT NULL,
    reported_at timestamptz NOT NULL,
    PRIMARY KEY (device_id, module)
  )`
])
