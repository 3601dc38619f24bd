/**
 * The epoch that the latest connection of a device has replaced, which it learns from
 * the statement that stores it. Null: a version that does not say so.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE presence ADD replaced_epoch bigint`
])
