/**
 * Whoever removes devices counts in the order of whoever adds them: those of the
 * project (`count_removed`, migration 0014), then those of the blocks (0042, 0053).
 * Triggers run in the order of their names.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TRIGGER count_former_devices ON device RENAME TO count_removed_devices`
])
