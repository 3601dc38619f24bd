/**
 * Finds in the feed what tells of the presence of a device. The numbers are those of
 * `DeviceStatusChanged` and `ConnectionReplaced`.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE INDEX feed_presence ON feed (device, xid, seq) WHERE kind IN (0, 8)`
])
