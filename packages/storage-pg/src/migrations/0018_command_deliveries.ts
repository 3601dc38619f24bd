/**
 * How often commands were handed to their devices, and which calls are waited for.
 */
import { statements } from "./statements.ts"

export default statements([
  // What was handed over before counts once.
  `ALTER TABLE command ADD COLUMN deliveries smallint NOT NULL DEFAULT 0,
    ADD COLUMN synchronous boolean NOT NULL DEFAULT false`,
  `UPDATE command SET deliveries = 1 WHERE state IN (1, 2)`
])
