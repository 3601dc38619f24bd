/**
 * The budget of scenes that run each other, and executions that are claimed
 * project by project.
 */
import { statements } from "./statements.ts"

export default statements([
  // Null: no other execution has started it.
  `ALTER TABLE scene_execution ADD root_id text COLLATE "C"`,
  `CREATE INDEX scene_execution_waiting ON scene_execution (project_id, due_at, seq) WHERE due_at IS NOT NULL`,
  `DROP INDEX scene_execution_due`,
  // What has ended beyond what is kept is found past any number that waits.
  `CREATE INDEX scene_execution_ended ON scene_execution (scene_id, seq DESC) WHERE due_at IS NULL`,

  `CREATE TABLE scene_tree (
    root_id text COLLATE "C" PRIMARY KEY,
    actions bigint NOT NULL,
    started_at timestamptz NOT NULL,
    ended text
  )`,
  `CREATE INDEX scene_tree_oldest ON scene_tree (started_at)`
])
