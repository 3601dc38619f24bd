/**
 * What the overview shows: what is counted of each project, what needs attention, and
 * what nodes say of themselves beside their heartbeats.
 */
import { statements } from "./statements.ts"

export default statements([
  // Each count stands twice: by minute (step 1) and by hour (step 60). Times are in minutes since 1970.
  `CREATE TABLE activity (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    step smallint NOT NULL,
    minute integer NOT NULL,
    measure text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (project_id, step, minute, measure, code)
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX activity_oldest ON activity (step, minute)`,
  `CREATE TABLE trouble (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    kind text COLLATE "C" NOT NULL,
    -- The id of a device or a scene.
    subject text COLLATE "C" NOT NULL,
    times bigint NOT NULL,
    detail text NOT NULL,
    since timestamptz NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (project_id, kind, subject)
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX trouble_oldest ON trouble (at)`,
  `CREATE INDEX ota_task_under_way ON ota_task (project_id) WHERE status < 2`,
  `ALTER TABLE node ADD started_at timestamptz NOT NULL DEFAULT now(), ADD connections integer, ADD draining boolean NOT NULL DEFAULT false`
])
