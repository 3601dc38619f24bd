/**
 * Scenes, their timers and executions, webhook keys, the origin of a command.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE scene (
    scene_id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text NOT NULL,
    description text NOT NULL,
    status text NOT NULL,
    triggers json NOT NULL,
    conditions json NOT NULL,
    actions json NOT NULL,
    paused_until timestamptz,
    revision bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, name)
  )`,
  `CREATE INDEX scene_newest ON scene (project_id, created_at DESC, seq DESC)`,
  `CREATE INDEX scene_newest_of_status ON scene (project_id, status, created_at DESC, seq DESC)`,

  `CREATE TABLE scene_product (
    product_key text COLLATE "C" NOT NULL,
    scene_id text COLLATE "C" NOT NULL REFERENCES scene ON DELETE CASCADE,
    PRIMARY KEY (product_key, scene_id)
  )`,
  `CREATE INDEX scene_product_of_scene ON scene_product (scene_id)`,

  `CREATE TABLE scene_timer (
    cron_id text COLLATE "C" PRIMARY KEY,
    scene_id text COLLATE "C" NOT NULL REFERENCES scene ON DELETE CASCADE,
    project_id text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    due_at timestamptz
  )`,
  `CREATE INDEX scene_timer_of_scene ON scene_timer (scene_id)`,
  `CREATE INDEX scene_timer_due ON scene_timer (due_at) WHERE due_at IS NOT NULL`,

  // Executions that wait, and executions that are over. No foreign key to the
  // scene, so that a report is not refused while the scene is being deleted.
  `CREATE TABLE scene_execution (
    execution_id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    scene_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    fired_at timestamptz NOT NULL,
    event json NOT NULL,
    chain json NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    reason text NOT NULL DEFAULT '',
    verdict json NOT NULL DEFAULT 'null',
    outcomes json NOT NULL DEFAULT '[]',
    has_fired boolean NOT NULL DEFAULT false,
    due_at timestamptz,
    revision bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL
  )`,
  `CREATE INDEX scene_execution_newest ON scene_execution (scene_id, seq DESC)`,
  `CREATE INDEX scene_execution_due ON scene_execution (due_at, seq) WHERE due_at IS NOT NULL`,
  `CREATE INDEX scene_execution_fired ON scene_execution (scene_id, fired_at) WHERE has_fired`,

  `CREATE TABLE webhook_key (
    project_id text COLLATE "C" PRIMARY KEY REFERENCES project ON DELETE CASCADE,
    current text NOT NULL,
    created_at timestamptz NOT NULL,
    previous text,
    previous_until timestamptz
  )`,

  `ALTER TABLE command ADD origin text COLLATE "C"`,
  `CREATE UNIQUE INDEX command_of_origin ON command (device_id, origin) WHERE origin IS NOT NULL`
])
