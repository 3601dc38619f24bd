/**
 * Readers of the whole feed that all nodes share.
 */
import { statements } from "./statements.ts"

export default statements([
  // The place of the feed up to which everything has been dealt with; the holder is who knows the epoch.
  `CREATE TABLE feed_reader (
    name text COLLATE "C" PRIMARY KEY,
    place text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    leased_until timestamptz NOT NULL
  )`
])
