/**
 * Quotas: limits of projects, and what they have. Triggers count, once for each
 * statement, so that no way to add or remove a row goes uncounted.
 */
import { statements } from "./statements.ts"

const counted = [["products", "product"], ["devices", "device"], ["accessKeys", "access_key"], ["scenes", "scene"]]

export default statements([
  `CREATE TABLE project_quota (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    quota text COLLATE "C" NOT NULL,
    maximum bigint NOT NULL,
    PRIMARY KEY (project_id, quota)
  )`,
  `CREATE TABLE project_usage (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    quota text COLLATE "C" NOT NULL,
    used bigint NOT NULL,
    minute bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, quota)
  ) WITH (fillfactor = 50)`,
  `CREATE FUNCTION count_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO project_usage AS usage (project_id, quota, used)
      SELECT project_id, TG_ARGV[0], count(*) FROM changed GROUP BY project_id ORDER BY project_id
      ON CONFLICT (project_id, quota) DO UPDATE SET used = usage.used + excluded.used;
      RETURN NULL;
    END
  $$`,
  `CREATE FUNCTION count_removed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE project_usage SET used = used - gone.count
      FROM (SELECT project_id, count(*) AS count FROM changed GROUP BY project_id) AS gone
      WHERE project_usage.project_id = gone.project_id AND project_usage.quota = TG_ARGV[0];
      RETURN NULL;
    END
  $$`,
  ...counted.flatMap(([quota, table]) => [
    `INSERT INTO project_usage (project_id, quota, used)
      SELECT project_id, '${quota}', count(*) FROM ${table} WHERE project_id IN (SELECT id FROM project)
      GROUP BY project_id`,
    `CREATE TRIGGER count_added AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed
      FOR EACH STATEMENT EXECUTE FUNCTION count_added('${quota}')`,
    `CREATE TRIGGER count_removed AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed
      FOR EACH STATEMENT EXECUTE FUNCTION count_removed('${quota}')`
  ])
])
