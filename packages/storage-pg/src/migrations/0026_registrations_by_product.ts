/**
 * Registrations are counted for each product. Rows of `project_usage` that counted
 * them for the project stay for servers of the version before.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE product_registrations (
    product_key text COLLATE "C" PRIMARY KEY REFERENCES product ON DELETE CASCADE,
    minute bigint NOT NULL,
    used bigint NOT NULL
  ) WITH (fillfactor = 50)`
])
