/**
 * The database itself keeps the audit log: entries do not change, and go only when
 * they are older than a day.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE FUNCTION audit_entry_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'audit_entry: entries of the audit log are not changed, and not deleted before they are a day old';
    END
  $$`,
  `CREATE FUNCTION audit_entry_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT FROM gone WHERE at > now() - interval '1 day') THEN
        RAISE EXCEPTION 'audit_entry: entries of the audit log are not deleted before they are a day old';
      END IF;
      RETURN NULL;
    END
  $$`,
  `CREATE TRIGGER kept BEFORE UPDATE OR TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_kept()`,
  `CREATE TRIGGER deleted AFTER DELETE ON audit_entry REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_deleted()`
])
