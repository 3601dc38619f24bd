/**
 * Jobs, and a task for each of their devices. The last statements count jobs for
 * quotas, as migration 0014 does it for other tables.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE job (
    job_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text NOT NULL,
    description text NOT NULL,
    document json NOT NULL,
    timeout int NOT NULL,
    product_key text COLLATE "C",
    is_cancelled boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL
  )`,
  `CREATE INDEX job_by_project ON job (project_id, created_at, job_id)`,
  `CREATE TABLE job_task (
    job_id bigint NOT NULL REFERENCES job ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    state text COLLATE "C" NOT NULL DEFAULT 'queued',
    progress smallint NOT NULL DEFAULT 0,
    details json NOT NULL DEFAULT '{}',
    is_untold boolean NOT NULL DEFAULT true,
    due_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, device_id)
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX job_task_by_device ON job_task (device_id, job_id)`,
  `CREATE INDEX job_task_open ON job_task (job_id) WHERE state IN ('queued', 'sent', 'in_progress')`,
  `CREATE INDEX job_task_due ON job_task (due_at) WHERE due_at IS NOT NULL`,
  `CREATE TRIGGER count_added AFTER INSERT ON job REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_added('jobs')`,
  `CREATE TRIGGER count_removed AFTER DELETE ON job REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed('jobs')`
])
