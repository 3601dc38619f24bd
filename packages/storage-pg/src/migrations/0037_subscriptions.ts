/**
 * Subscriptions, which count as quotas do (migration 0014).
 */
import { statements } from "./statements.ts"

export default statements([
  // progress: shards with their places, workers, and what is wrong with the webhook. It changes with each read.
  `CREATE TABLE subscription (
    subscription_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    filter json NOT NULL,
    webhook json,
    progress json NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, name)
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX subscription_newest ON subscription (project_id, created_at DESC, subscription_id DESC)`,
  `CREATE INDEX subscription_pushing ON subscription (subscription_id) WHERE webhook IS NOT NULL`,
  `CREATE TRIGGER count_added AFTER INSERT ON subscription REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_added('subscriptions')`,
  `CREATE TRIGGER count_removed AFTER DELETE ON subscription REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed('subscriptions')`
])
